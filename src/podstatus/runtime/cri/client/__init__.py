"""The only place that calls a container runtime: CRI v1 over a unix socket.

Every call has a deadline, and every error of gRPC is translated here. What the answers mean for a
pod does not belong here.

Tests: tests/runtime/cri/client.
"""
