"""The `podstatus` command.

One module per command: most are HTTP clients of a running agent, `run`, `observe` and `apiserver`
start a process. `main` is the entry point and imports the commands lazily, so that a missing
optional dependency gives an installation hint. Services never belong here, and no other package
imports this one. Tests: tests/cli.
"""
