"""Exec and attach: sessions with a process in a container.

The agent's side only. Entering the namespaces never belongs here: `nsenter` does that in a process
of its own. Tests: tests/runtime/process/exec.
"""
