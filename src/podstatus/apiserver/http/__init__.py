"""Requests and responses as values: paths, errors, media types, protobuf bodies.

Pure and without sockets: aiohttp stays in `apiserver.listener` and `apiserver.kubelet`. The meaning
of the query and the body is in `apiserver.request`. Tests: tests/apiserver/http.
"""
