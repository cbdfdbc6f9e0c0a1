"""One cgroup per pod and container, versions 1 and 2: find, make, limit, resize, read, remove.

Calculations belong in `model`. Pod-level decisions about a resize never belong here. Tests:
tests/runtime/process/cgroups.
"""
