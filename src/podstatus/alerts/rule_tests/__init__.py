"""Unit tests of rules, as promtool has them: scripted or recorded pods, expected alerts. Pure.

`cases` reads test files, `run` plays a test against the engine, `replay` plays a recorded history.
The command is in cli. Tests: tests/alerts/rule_tests.
"""
