"""GET /v1/watch, pods and transitions as server-sent events (SSE).

`serve_watch` limits and disconnects clients; `pod_stream` and `transition_stream` produce the
events of one client; `request` and `sse` are pure. There are no per-client queues: a
slow client gets the newest state. Storing history belongs in `observe`. Tests: tests/web/watch.
"""
