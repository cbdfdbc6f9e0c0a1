"""What the agent answers over HTTP."""
