"""The `podstatus` command.

Most commands are HTTP clients of a running agent; `run`, `observe` and `apiserver` start a process.
`main` is the entry point; `register_commands` names the commands, `commands` declares them, the
modules here, `start` and `actions` carry them out. Each is imported when its command runs, which
keeps help and completion fast. Services never belong here, and no other package imports this one.
Tests: tests/cli.
"""
