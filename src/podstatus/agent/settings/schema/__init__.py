"""What a setting is declared with, pure: names, value types, validation, configuration fields.

Functions take text or parsed YAML and return values or errors. The declarations are in
`agent.settings.model`; reading files and environment variables belongs to `agent.settings.load`.
Tests: tests/agent/settings.
"""
