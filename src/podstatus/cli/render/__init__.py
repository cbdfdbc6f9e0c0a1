"""Format objects for display, pure: tables, `describe`, wrapped text.

Functions return tables or lines of `rich.text`. Writing them, terminal size and colors belong to
`cli.terminal`. Tests: tests/cli/render.
"""
