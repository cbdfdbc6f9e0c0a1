"""Builders, fakes, a virtual clock, API servers and suites for tests of this project and others.

`podstatus.testing.apiserver` is a pytest plugin and keeps its name. No product logic belongs here,
and nothing of the agent, the web server or the CLI is imported. Tests: tests/testing.
"""
