"""Scripts, containers and pod records of the simulated runtime.

Pure: all state follows from a record and a time. Files, clocks and wake-ups never belong here.
Tests: tests/runtime/simulated.
"""
