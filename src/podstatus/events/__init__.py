"""Record events, correlate repeats, limit floods and send the result.

`recorder` accepts events from any thread, `correlator` decides between create, patch and suppress,
`sender` retries. All but `recorder` and `sender` is pure. Direct API calls do not belong here: the
recorder sends through the port `EventSink`.

Tests: tests/events.
"""
