"""Credentials from a kubeconfig's exec plugin.

Caches and renews the credential, runs the plugin under a guard that kills what it started, and
parses its ExecCredential. Credentials from files belong in `auth`. Tests: tests/client/auth.
"""
