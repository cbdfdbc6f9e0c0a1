"""Evaluate rules in a child process, within budgets of CPU time and memory.

`ports` has requests, results and protocols; `process` supervises the child from the agent;
`worker` is the program of the child; `wire` is what they exchange; `crash_attribution` decides
which rule to disable when the child dies. Never a decision about alerts. Tests:
tests/alerts/evaluator.
"""
