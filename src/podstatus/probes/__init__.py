"""Probes: when they are due, what they check, what follows from their results."""
