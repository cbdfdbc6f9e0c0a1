"""What a node reports as usage, and NodeMetrics and PodMetrics of it; pure.

Tests: tests/apiserver/resource_metrics/decide.
"""
