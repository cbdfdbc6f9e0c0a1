"""Documents about the server itself: discovery, OpenAPI, version, health paths.

Pure: computed from `apiserver.resources` and the patch schemas. Objects are never served from here.
Tests: tests/apiserver/discovery.
"""
