"""Credentials and TLS: from a kubeconfig, a service account, a token or an exec plugin.

Loads the client configuration, reloads files that are rotated, and picks the proxy; exec plugins
are run in `exec_plugin`. The content of a kubeconfig is parsed and validated in `kubeconfig`;
requests are sent in `rest`. Secrets never appear in an error, a log or a repr. Tests:
tests/client/auth.
"""
