"""Compute the Node from readings and settings:

capacity, conditions, the whole object, and the patch to send.
Pure. Never here: a clock, a retry, a call to the API server or the machine. Tests:
tests/node/decide.
"""
