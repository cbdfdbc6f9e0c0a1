"""Requests and responses as values: paths, errors, media types, protobuf bodies.

Pure and without sockets: aiohttp stays in `apiserver.listener` and `apiserver.kubelet`. What the
query and the body of a request mean is in `apiserver.request`. Tests: tests/apiserver/http.
"""
