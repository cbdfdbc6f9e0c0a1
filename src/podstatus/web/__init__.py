"""Serve the kubelet's endpoints, the /v1 query API and its watch over HTTPS.

`server` listens, `auth` checks the client, `routes` finds the endpoint, `handlers` answers. All
data comes through `ports` and the snapshot of `observe`; no module here calls the API server,
changes a pod status or decides about pods. Tests: tests/web.
"""
