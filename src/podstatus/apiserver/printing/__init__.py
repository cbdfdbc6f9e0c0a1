"""Objects as Tables: the columns and rows that `kubectl get` prints.

Pure. Used by the server and by the agent's own tables. Terminal output does not belong here. Tests:
tests/apiserver/printing.
"""
