"""The files that agent and shim exchange: paths, values, and the store that reads and writes them.

All state that survives an agent is here. Decisions about pods never belong here. The shim has its
own reader in `shim/records.py`. Tests: tests/runtime/process/records.
"""
