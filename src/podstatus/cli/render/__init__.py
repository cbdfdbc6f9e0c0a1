"""Format objects for display, pure: tables, pod rows, `describe`, wrapped and styled text.

Functions return lines or tables. Writing them, terminal size and colors belong to `cli.terminal`.
Tests: tests/cli/render.
"""
