"""The cluster observer: follow pods, nodes and leases, record a history, serve queries.

An observer writes nothing to the API server and runs no pod. Tests: tests/agent/observer.
"""
