"""The Node object of this machine at the API server:

registration, status, lease, and the cache of the server's copy. `decide` computes what the Node
says (pure), `machine` reads the machine, `compose` builds the services. Never here: pod logic,
settings files, a direct API client (`ports` has the protocol). Tests: tests/node.
"""
