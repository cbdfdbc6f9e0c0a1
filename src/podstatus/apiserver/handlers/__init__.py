"""The verbs: get, list, watch, create, update, patch, delete, and the review requests.

A handler takes a request value, calls the registry or the store, and returns a response value.
Parsing belongs in `apiserver.request`, rules in `apiserver.strategies`, calls to nodes in
`apiserver.kubelet`. Tests: tests/apiserver/handlers.
"""
