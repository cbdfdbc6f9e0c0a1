"""Authenticate and authorize requests, and refuse those of other origins.

`authorizer` accepts the agent's token, client certificates and reviewed tokens, maps a request to
the rights that it needs, and caches the decisions of the API server; `origin` checks Host and
Origin headers. What an endpoint returns never belongs here. Tests: tests/web/auth.
"""
