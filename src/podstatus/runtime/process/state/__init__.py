"""What the agent knows about pods and processes, kept equal to disk and /proc.

Nothing here blocks. Starting and stopping containers never belongs here. Tests:
tests/runtime/process/state.
"""
