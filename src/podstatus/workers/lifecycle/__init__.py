"""The lifecycle of a pod as a state machine, the registry of all lifecycles, and the status of a
pod that the node terminates. Pure: transitions return a new value. Never here: tasks, timers,
calls to a runtime. Tests: tests/workers/lifecycle.
"""
