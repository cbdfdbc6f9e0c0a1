"""Runs one command in the namespaces of a container, for exec. Standard library only.

It runs in a process of its own, as `python -I -S …/nsenter_program.py SOCKET REQUEST`. Its modules
import each other and `shim.syscalls` by relative names and nothing else of podstatus, and all of
them are loaded before it enters.

    agent ─ socket ─► enter: cgroups, namespaces, user, capabilities
                         └ supervise (in the pid namespace, a subreaper of all that is started)
                              └ the command

Tests: tests/runtime/process/exec.
"""
