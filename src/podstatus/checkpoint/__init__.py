"""Small durable state in atomic, checksummed files.

The resource state of the kubelet and the outbox of undelivered statuses. What the state means does
not belong here: allocation is decided in `workers`, statuses in `status`. File formats are in
`formats`.

Tests: tests/checkpoint.
"""
