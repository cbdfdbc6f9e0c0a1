"""Kubernetes objects, scalars, encodings, patches, validation and API errors.

Everything here is pure: no event loop, clock, disk, network or log. The modules beside the sub-
packages are rules that more than one package needs, such as restart policy, conditions and node
selection. Decisions about a pod's status belong to `status` and `pods`, requests to `client`.

Tests: tests/kube.
"""
