"""Transitions: the differences between two states of a pod, in order. Pure.

A state is a status or a summary. `tracker` remembers the last state of each pod, `resume` continues
after a restart from what the history has. Queues, threads and files are in history. Tests:
tests/observe/transitions.
"""
