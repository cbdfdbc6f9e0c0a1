"""The strategy of each resource: defaults, validation, updates, deletion.

Pure: documents in, new documents or field errors out. No store, no HTTP, no clock. Generic field
rules belong in `kube`, the order of the steps in `apiserver.generic_registry`. Tests:
tests/apiserver/strategies.
"""
