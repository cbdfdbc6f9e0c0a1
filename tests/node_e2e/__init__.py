"""Runs Kubernetes' own node tests on the agent: `make test-e2e`.

pytest collects only the unit tests of the runner (`test_*.py`). docs/contributing/kubernetes-e2e.md
describes what is run.
"""
