"""Runs a command where a container is, for whoever talks to it. The agent starts it as a process.

Stdlib only, and nothing else of podstatus: it is run by `python -I -S run_exec.py`, and all of it
is loaded before it goes where the container is.

    agent ─ socket ─► enter: cgroups, namespaces, user, capabilities
                         └ watch (in the pid namespace, a subreaper): all it started is below
                              └ the command
"""
