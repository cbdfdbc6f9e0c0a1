"""The CRI runtime: the runtime port over a container runtime that serves CRI v1.

`api` has the messages, `client` the calls, `spec` the pure translation of pods. What the port does
not need to know of containers, such as restarts and phases, never belongs here. Needs the extra
`cri`.

Tests: tests/runtime/cri.
"""
