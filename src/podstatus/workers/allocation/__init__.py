"""Allocated and actuated resources:

their store, the sum of requests of all active pods, the controller that retries pending resizes,
and the actuator that applies a resize through the runtime. Upstream: pkg/kubelet/allocation. Never
here: decisions (`resize`, `admission`) or the file format (`checkpoint`). Tests:
tests/workers/allocation.
"""
