"""CPU, memory and disk usage of containers and pods.

Collection never blocks the event loop. Metrics and their names never belong here. Tests:
tests/runtime/process/usage.
"""
