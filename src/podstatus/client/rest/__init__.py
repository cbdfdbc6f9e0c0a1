"""Requests, responses and watch streams over HTTP.

Resources and their paths, the transport with its timeouts and DNS resolver, rate limits, response
errors, and the health of the server as its responses show it. Bytes in, bytes out: objects are
decoded in `informer` and `typed`, credentials come from `auth`. Tests: tests/client/rest.
"""
