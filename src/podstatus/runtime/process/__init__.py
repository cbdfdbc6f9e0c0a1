"""Containers as processes of this machine, with one shim per pod that outlives the agent.

The modules at the top implement the port: adapter, starter, stopper, resizer, the volume
refresher, and the preparer that turns a pod's spec into a command. `shim_program.py` and
`nsenter_program.py` are programs; they run the packages `shim` and `nsenter` in processes of their
own. Restart policy and pod status never belong here. Tests: tests/runtime/process.
"""
