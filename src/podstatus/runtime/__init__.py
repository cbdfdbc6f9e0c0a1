"""The runtime port, the PLEG and pod cache on top of it, and the adapters.

An adapter starts, stops and lists containers. Pod status, restart policy and API calls never belong
here. `port.py` is the contract; `podstatus.testing.runtime_suite` checks an adapter against it.
Tests: tests/runtime.
"""
