"""Alerting: rules over facts about pods and nodes, active alerts, notification, actions.

The flow: service (what changed) -> evaluator (a child process; CEL) -> engine (active alerts) ->
delivery (queues) -> notifiers and actions. `model` and `ports` are shared by all of them,
`defaults` has the built-in rules. No HTTP server here: alerts are served by web. Tests:
tests/alerts.
"""
