"""Container logs in the CRI format, read while they are written; termination messages.

Writing and rotating logs never belongs here: `shim/rotating_log_file.py` does that. Tests:
tests/runtime/process/logs.
"""
