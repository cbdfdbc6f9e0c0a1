"""The default seccomp profile, its BPF program, and which container gets it.

Pure. Installing the filter never belongs here: `shim/confinement.py` and `nsenter/syscalls.py` do
that. Tests: tests/runtime/process/seccomp.
"""
