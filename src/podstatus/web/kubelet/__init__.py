"""The endpoints of a kubelet, with upstream's paths, parameters and error messages.

Health, pods, stats, z-pages, container logs, exec and attach. Endpoints that no kubelet has belong
in `v1` or `watch`. Pure: `channel_protocol`, `pods`, `stats`, `zpages`. Tests: tests/web/kubelet.
"""
