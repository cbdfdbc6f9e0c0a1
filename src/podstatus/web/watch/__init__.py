"""GET /v1/watch, pods and transitions as server-sent events (SSE).

`service` limits and disconnects clients; `pods` and `transitions` produce the events of one client;
`request`, `selection` and `sse` are pure. There are no per-client queues: a slow client gets the
newest state. Storing history belongs in `observe`. Tests: tests/web/watch.
"""
