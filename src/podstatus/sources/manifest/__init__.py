"""Decode a manifest:

YAML or JSON text within size bounds, validated, defaulted, and made static pods; or the problems,
with their location. Pure. Never here: files, HTTP, the set of the last valid pods
(`manifest_cache`). Tests: tests/sources/manifest.
"""
