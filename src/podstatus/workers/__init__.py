"""Run the pods of the node:

the dispatcher, one worker per pod, the syncer and the executor that it drives, hooks, probe
results, housekeeping. Decisions are pure and live in `actions`, `admission`, `lifecycle` and
`resize`; services with state on disk or timers live here, in `allocation` and in `shutdown`. Never
here: HTTP, SQL, HTML, settings, API calls. Tests: tests/workers.
"""
