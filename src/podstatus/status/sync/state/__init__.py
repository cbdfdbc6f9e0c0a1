"""Pure state of the parallel sync.

`pod_sync_state` is all that is known of one pod; `workqueue` holds the states and selects the next
pod; `retry` and `circuit_breaker` decide how long failed pods and a failed server are left alone.
Every method takes the current time as an argument. No event loop, task, clock or log:
`status.sync.parallel` runs the tasks. Tests: tests/status/sync/state.
"""
