"""Values, the clock port and the wake-up: nothing here knows Kubernetes."""
