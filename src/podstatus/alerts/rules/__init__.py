"""Rule files: read, check, and the facts and action kinds that rules can use. Pure.

Every error in a file is reported at once, with line and column. Nothing here imports CEL:
expressions are compiled in cel, in a process of their own; `static_checks` looks at their text
only. Tests: tests/alerts/rules.
"""
