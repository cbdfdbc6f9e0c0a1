"""The server's certificate authority, its certificates, the token and the kubeconfig.

Files are written through `apiserver.state_dir`. Checks of a request's credentials belong in
`apiserver.listener`. Tests: tests/apiserver/pki.
"""
