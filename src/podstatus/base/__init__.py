"""The clock port, back-off, token bucket, metric values and wake-ups.

Small parts that every other package uses; the standard library and msgspec are enough for them. No
Kubernetes word belongs here, and nothing imports another package of podstatus. `clock` is
the port, `system_clock` the real clock; sockets are in `net`.

Tests: tests/base.
"""
