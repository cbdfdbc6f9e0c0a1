"""Build the services of a node from its settings, and connect them.

`dependencies` has what the parts share, and the notifications between them; `build_dependencies`
builds it first, so that no part waits for the receiver of what it sends. Each other module builds
one part: pods, node, sources, alerts, runtime, metrics, history, the HTTPS server. `agent` joins
the parts and runs them. Algorithms belong to the packages that are connected here. Tests:
tests/agent/compose.
"""
