"""Service accounts as clients: their tokens, what they may do, and the volume that holds a token.

The owner's token is a matter of `pki` and of the listener. The objects that a namespace needs
(`default`, `kube-root-ca.crt`) are created by `controllers.namespace_defaults`.
Tests: tests/apiserver/service_accounts.
"""
