"""What stays with a pod's processes when the agent is gone. Standard library only.

It runs apart from the rest, as `python -I -S …/run_shim.py FOLDER`, so its modules import each
other by relative names and nothing else of ours.
"""
