"""Pure decisions about the evaluator: the budget of a rule, and the rule that caused a crash.

Nothing here starts a process or reads a clock: `alerts.evaluator.budgeted_evaluator` does.
Tests: tests/alerts/evaluator/decide.
"""
