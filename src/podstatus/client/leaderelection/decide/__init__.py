"""Pure decisions of leader election: who holds the Lease, and what to write into it.

Nothing here waits, sends a request or reads a clock. Tests: tests/client/leaderelection.
"""
