"""Replayer, builders and fakes that users may use too."""
