"""Pure state of the parallel sync.

The workqueue, the retry of each failed pod, the circuit breaker, and the known server copy that a
patch starts from. Every method takes the current time as an argument. No event loop, task, clock or
log: `status.sync.parallel` runs the tasks. Tests: tests/status/sync/state.
"""
