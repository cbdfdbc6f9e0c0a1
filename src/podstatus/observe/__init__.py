"""Show what is known of pods and nodes: a snapshot, a history and metrics.

Code here reads what the packages below report and changes nothing: no write to an API server, a
runtime or a pod. HTTP handlers belong in web, rules in alerts. `ports` has the port
`StatusView` that web and alerts use, `snapshot_cache` the current state of all pods. Tests:
tests/observe.
"""
