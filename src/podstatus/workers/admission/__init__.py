"""Decide whether the node admits a pod:

size limits, sysctls, operating system, resource fit, node affinity, host ports, taints. Pure. Never
here: the allocations of running pods (`allocation`), or the rejection of a pod at the API server.
Tests: tests/workers/admission.
"""
