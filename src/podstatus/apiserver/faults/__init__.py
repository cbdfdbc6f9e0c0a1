"""Fault injection: rules that delay, fail or drop requests, and their middleware.

Off unless enabled. `rules` is pure. Nothing of the normal request path belongs here. Tests:
tests/apiserver/faults.
"""
