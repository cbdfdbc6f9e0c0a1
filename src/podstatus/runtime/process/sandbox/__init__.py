"""The isolation of containers: find bubblewrap, build the root, or run without a sandbox.

Starting the sandbox never belongs here: `shim/bubblewrap.py` does that. Tests:
tests/runtime/process/sandbox.
"""
