"""The default seccomp profile, its BPF program, and which container gets it.

Pure. Installing the filter never belongs here: `shim/syscalls.py` does that. Tests:
tests/runtime/process/seccomp.
"""
