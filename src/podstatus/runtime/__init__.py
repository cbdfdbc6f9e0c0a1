"""What runs the containers of pods: the port, what is known through it, and the adapters."""
