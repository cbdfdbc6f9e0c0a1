"""The command line of bubblewrap: its arguments, and how many it accepts.

Pure. Finding or running the program never belongs here. Tests: tests/runtime/process/sandbox.
"""
