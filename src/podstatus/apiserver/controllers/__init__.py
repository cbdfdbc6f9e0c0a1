"""The control loops of a minimal cluster: scheduler, node lifecycle, namespaces.

Each follows changes of the store and writes through the registry; decisions are in
`controllers.decide`. Controllers of workloads (Deployments, Jobs) do not belong here. Tests:
tests/apiserver/controllers.
"""
