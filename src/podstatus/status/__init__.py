"""Decide each pod's status; keep the server's copy equal."""
