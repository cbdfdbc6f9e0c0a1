"""The replayer of recorded cases: `python -m podstatus.testing.replay`.

It reads a case, calls the product's functions and prints the result; it contains no logic of its
own. Tests: tests/conformance.
"""
