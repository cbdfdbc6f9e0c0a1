"""Compute what a pod needs next:

which containers to stop, start, restart or hold back, in which order, and with which grace period.
Pure: spec, runtime facts, probe verdicts and time go in, a `PodActions` comes out. Never here:
calls to a runtime, events, logs. Tests: tests/workers/actions.
"""
