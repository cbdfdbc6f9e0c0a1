"""Decisions of the daemon as plain functions: whether a supervised agent hangs (pure).

Never here: processes, pipes, clocks. Tests: tests/agent/daemon.
"""
