"""The declarations of the commands: arguments, options and help, one module per command.

A module here imports only what its help needs. What the command does is imported when it runs: from
the modules beside this package, or from `agent`. Tests: tests/cli.
"""
