"""Typed calls for one kind each: pods, nodes and leases, events, pod references, reviews.

Each module implements the port of the package that needs it on top of `ApiClient`, and decodes the
response. Decisions about these objects never belong here. Tests: tests/client/typed.
"""
