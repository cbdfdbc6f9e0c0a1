"""The desired pods of a node, and what their containers add up to."""
