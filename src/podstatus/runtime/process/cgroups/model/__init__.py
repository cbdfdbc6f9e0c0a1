"""Calculations over cgroups: mounts, interface files, and the order of a resize.

Pure. Reading or writing a cgroup file never belongs here. Tests: tests/runtime/process/cgroups.
"""
