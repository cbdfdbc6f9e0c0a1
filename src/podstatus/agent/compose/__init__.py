"""Build the services of a node from its settings, and connect them.

Each module builds one part: pods, node, sources, alerts, runtime, metrics, history, shutdown, the
HTTPS server, the embedded API server. `agent` joins the parts and runs them. Algorithms belong to
the packages that are connected here. Tests: tests/agent/compose.
"""
