"""From the fields of a pod's spec to values: environment, security, mounts, projected files.

Every field is honoured or refused by name. Pure: no event loop, clock, disk, network or log. Tests:
tests/runtime/process/spec.
"""
