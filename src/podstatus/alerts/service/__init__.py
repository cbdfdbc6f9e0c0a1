"""The alert service: follow pods and nodes, have rules evaluated, pass alerts on.

`subjects` says which pods and nodes to evaluate and with which facts; `alert_service` is the loop.
Decisions about alerts belong in engine, retries in delivery. Tests: tests/alerts/service.
"""
