"""Opening and removing paths that a hostile pod can change, and the mount table of the host.

Each step is opened in the folder before it; the kernel follows no symbolic link. Volume types never
belong here. Tests: tests/runtime/process/paths.
"""
