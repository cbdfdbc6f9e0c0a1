"""Probe containers:

`targets` selects the probes to run, `thresholds` counts results (both pure), `workers` runs one
task per probe, `check_dispatch` and `check_*` make a single check by exec, HTTP, TCP or gRPC.
`http_hook` sends the request of an httpGet lifecycle hook with the same client. Never here: pod
conditions, restarts, the API server. Tests: tests/probes.
"""
