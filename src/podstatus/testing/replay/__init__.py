"""Plays recorded cases on the product's own code: `python -m podstatus.testing.replay`."""
