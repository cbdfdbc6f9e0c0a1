"""The proxy to kubelets: logs, exec, attach and the node proxy.

The client of the node's endpoints, the relay between two WebSockets, and the pure parts: node
addresses, checks of log and exec options, translation of node errors. No other module of the API
server opens connections. Tests: tests/apiserver/kubelet.
"""
