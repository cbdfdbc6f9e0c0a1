"""Scalar values as Kubernetes and Go read and print them.

Quantities, times, durations and Go strings. Pure. Objects and encodings do not belong here: a
scalar imports nothing of `kube` but other scalars.

Tests: tests/kube/scalars.
"""
