"""The /v1 query API over the snapshot and the history of `observe`, pure.

`endpoints` is the table from which routes, parameters and the OpenAPI document follow; `handlers`
computes each response; `wire` has the structs that travel. No sockets, clocks or logs:
`data_handlers` in the parent package does the HTTP part, `watch` beside it streams. Tests:
tests/web/v1.
"""
