"""The shim: stays with a pod's processes when the agent ends. Standard library only.

It runs in a process of its own, as `python -I -S …/shim_program.py POD_FOLDER SANDBOX_ID`. Its
modules import each other by relative names and nothing else of podstatus. Tests:
tests/runtime/process/shim.
"""
