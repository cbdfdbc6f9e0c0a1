"""Keep the API server's copy of each status equal to the stored one.

The sync loop, the sequential syncer (as upstream), the parallel syncer (the default), the sender,
the outbox of undelivered statuses, and the correction of foreign writes. Decisions about the
content of a status belong in `status.decide`; HTTP belongs in `client`. Tests: tests/status/sync.
"""
