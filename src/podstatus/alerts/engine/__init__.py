"""The alert engine: from answers and time to pending, firing and resolved alerts. Pure.

`state_machine` has the transitions of one alert, `active_alerts` the alerts that are pending or
firing, `timers` what expires next. Never a clock, a queue of messages or a file. Tests:
tests/alerts/engine.
"""
