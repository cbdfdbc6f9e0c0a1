"""Start a process for `podstatus run` and `podstatus observe`: checks before it, what is printed.

The processes themselves belong to `podstatus.agent`. Tests: tests/cli/start; with an agent process:
tests/agent/daemon.
"""
