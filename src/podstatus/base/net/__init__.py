"""Accept connections with bounded resources.

The accept loop, the table that selects connections to close, and socket options. HTTP, TLS
configuration and request handling do not belong here. `connection_eviction` and `first_message` are
pure.

Tests: tests/base/net.
"""
