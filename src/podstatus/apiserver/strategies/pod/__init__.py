"""The pod strategy: admission, binding, updates, status, resize.

Pure. Rules that need only a pod spec belong in `kube`; this package holds the rules that depend on
the old object or on the subresource. Tests: tests/apiserver/strategies.
"""
