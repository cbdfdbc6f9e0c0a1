"""The declaration of every setting, pure: names, value types, validation, configuration fields.

Functions take text or parsed YAML and return values or errors. Reading files and environment
variables belongs to `agent.settings.load`. Tests: tests/agent/settings.
"""
