"""Node-pressure eviction: observe usage, and end pods before the node runs out of a resource.

`decide` holds the decisions, pure; the services that read usage and end pods live here. Never
here: how a pod is stopped, or how its status is sent. Tests: tests/eviction.
"""
