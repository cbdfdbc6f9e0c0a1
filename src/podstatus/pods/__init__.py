"""The pod manager of a node, and the status of a pod computed from runtime facts.

`pod_manager` holds the desired pods, static and mirror, under a lock; every other module is pure.
I/O, running containers and restart decisions do not belong here: they are in `sources`, `runtime`
and `workers`.

Tests: tests/pods.
"""
