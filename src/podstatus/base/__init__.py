"""The clock port, back-off, token bucket, metric values and wake-ups.

Small parts that every other package uses; the standard library and msgspec are enough for them. No
Kubernetes word belongs here, and nothing imports another package of podstatus. `aio` has the real
clocks and what needs an event loop; sockets are in `net`.

Tests: tests/base.
"""
