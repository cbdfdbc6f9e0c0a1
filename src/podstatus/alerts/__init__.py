"""Rules over what is known of pods and nodes, and who is told when one of them holds."""
