"""What is known of pods and their node, and what happened to them; it changes nothing."""
