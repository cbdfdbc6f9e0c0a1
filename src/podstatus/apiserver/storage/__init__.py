"""Object storage with resource versions, in memory and in SQLite, and the watch cache.

Writes are durable before they are visible. Validation, HTTP and the meaning of an object do not
belong here. Tests: tests/apiserver/storage.
"""
