"""The replayer of recorded cases: `python -m podstatus.testing.replay`.

It reads a case, calls the product's own functions and prints the answer. It decides nothing itself.
Tests: tests/conformance.
"""
