"""Authenticate and authorize requests, and refuse those of other origins.

`authorizer` accepts the agent's token, client certificates and reviewed tokens, and caches the
decisions of the API server; `attributes` maps a request to verb and subresource; `origin` checks
Host and Origin headers. What an endpoint returns never belongs here. Tests: tests/web/auth.
"""
