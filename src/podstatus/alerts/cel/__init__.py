"""Rules compiled to CEL and evaluated, with the cost of each measured. Pure.

The worker of evaluator imports this package; the process of the agent never does, because CEL
cannot be interrupted. Processes, sockets and limits belong in evaluator. Tests: tests/alerts/cel.
"""
