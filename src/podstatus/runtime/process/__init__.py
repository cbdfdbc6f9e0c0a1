"""Containers that are processes of this machine, each pod with a shim that outlives the agent."""
