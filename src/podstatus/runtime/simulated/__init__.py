"""A runtime that runs nothing: its containers do what their pods' annotations say, in any time."""

from podstatus.runtime.simulated.adapter import SimulatedRuntime

__all__ = ["SimulatedRuntime"]
