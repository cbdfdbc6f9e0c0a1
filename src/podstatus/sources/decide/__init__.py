"""Pure decisions of the sources: what changed in a desired set, and what a mirror pod needs.

Nothing here waits or calls the API server: `sources.mux` and `sources.mirror_controller` do.
Tests: tests/sources/decide.
"""
