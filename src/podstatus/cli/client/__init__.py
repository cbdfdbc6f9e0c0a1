"""The HTTP clients of the commands: agent, query API, API server, watch streams.

Functions return values or raise an error for the command to report. Formatting belongs to
`cli.render`. Tests: tests/cli/client; commands against a fake agent: tests/cli.
"""
