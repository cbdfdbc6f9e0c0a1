"""API servers as test fixtures: the embedded one, and a real kube-apiserver with its etcd.

Child processes end with the process that started them. The pytest fixtures are in
`podstatus.testing.apiserver`; the server itself is in `podstatus.apiserver`. Tests:
tests/testing/servers.
"""
