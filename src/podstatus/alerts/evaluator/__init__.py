"""Evaluate rules in a child process, within budgets of CPU time and memory.

`ports` has requests, results and protocols; `budgeted_evaluator`
owns the child (`child_process`) and disables rules that exceed a budget; `child_main` is the
program of the child; `wire` is what they exchange; `crash_attribution` decides which rule to
disable when the child dies. Never a decision about alerts. Tests: tests/alerts/evaluator.
"""
