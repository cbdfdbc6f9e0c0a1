"""Summaries of pods, nodes and cluster objects, and the health of a pod. Pure.

A summary is a small frozen value made from an API object. Changes between summaries are in
transitions, storage is in history. Never a loop, a clock, a file or a log here. Tests:
tests/observe/summary.
"""
