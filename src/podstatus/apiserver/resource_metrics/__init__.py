"""The Resource Metrics API (`metrics.k8s.io`), for `kubectl top`: usage of nodes and pods.

Usage is read from the nodes when a client asks, and retained for seconds. `decide` is pure: it
decodes what nodes report, and makes the API objects. What never belongs here: stored objects, and
connections, which are those of `kubelet`. Tests: tests/apiserver/resource_metrics.
"""
