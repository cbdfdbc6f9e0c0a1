"""The Node object of this machine: registration, lease, conditions, usage."""
