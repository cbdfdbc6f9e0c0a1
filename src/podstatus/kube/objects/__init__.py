"""API objects and runtime facts as frozen structs, field by field as in k8s.io/api v0.36.

Data only: wire types, the facts that a container runtime reports, allocations and usage. Pure.
Decisions, defaults and validation do not belong here.

Tests: tests/kube/objects.
"""
