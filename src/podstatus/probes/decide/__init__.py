"""Pure decisions of probing: which probes a pod has, and what their results add up to.

Nothing here waits, opens a socket or logs: `probes.workers` runs the checks.
Tests: tests/probes/decide.
"""
