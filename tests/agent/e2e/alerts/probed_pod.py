"""A pod with a readiness probe."""

PROBED = [{"name": "app", "image": "i", "readinessProbe": {"exec": {"command": ["true"]}}}]
