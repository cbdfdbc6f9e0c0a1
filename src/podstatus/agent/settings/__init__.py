"""The settings of `podstatus run`: the value, its loading, and its export.

Flags override environment variables, which override the configuration file, which overrides the
defaults. `model` declares each setting. No module of this package acts on a setting. Tests:
tests/agent/settings.
"""
