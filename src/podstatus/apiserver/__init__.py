"""The embedded API server: storage, strategies, handlers, controllers.

At the top: the composition (`server`), the TLS socket (`listener`), the generic registry
(`generic_registry`), the resource names (`resources`) and the state directory (`state_dir`).
Nothing of the agent, of pod status or of the client belongs here; the package imports `kube` and
`base` only. Tests: tests/apiserver.
"""
