"""Pure decisions about a pod's status.

Conditions, allowed transitions, normalization, comparison, the merge with the server's copy, and
the plan of a sync batch: functions over frozen values that take `now` and the feature gates as
arguments. No event loop, clock, lock, I/O or log. Tests: tests/status/decide.
"""
