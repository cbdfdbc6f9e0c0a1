"""The alert service: follow pods and nodes, have rules evaluated, pass alerts on.

`pods` and `nodes` say which subjects to evaluate and with which facts; `alert_service` is the loop.
Decisions about alerts belong in engine, retries in delivery. Tests: tests/alerts/service.
"""
