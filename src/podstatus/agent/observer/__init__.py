"""The cluster observer: follow pods, nodes and leases, record a history, serve queries, alert.

An observer changes no pod or node, and runs no pod. Tests: tests/agent/observer.
"""
