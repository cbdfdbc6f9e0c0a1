"""API objects and runtime facts as frozen structs, field by field as in k8s.io/api v0.36.

Data only: wire types, the facts that a container runtime reports, allocations and usage. Pure.
A class without a docstring is the Kubernetes API type of its name, of `v1` unless its module says
otherwise. Decisions, defaults and validation do not belong here.

Tests: tests/kube/objects.
"""
