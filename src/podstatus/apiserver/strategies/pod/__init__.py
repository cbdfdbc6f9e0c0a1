"""The strategy of pods: admission, binding, updates, status, resize.

Pure. Validation of a pod spec as such belongs in `kube`; here is what depends on the old object or
on the subresource. Tests: tests/apiserver/strategies.
"""
