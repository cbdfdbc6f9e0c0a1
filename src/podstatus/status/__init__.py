"""Decide each pod's status, and keep the API server's copy equal to it.

The status manager, its store of versioned statuses, its ports and its policy are here; `decide`
holds the pure decisions, `sync` the delivery to the API server. HTTP, files, settings and runtimes
never belong here: the manager reaches them through `ports`. Tests: tests/status.
"""
