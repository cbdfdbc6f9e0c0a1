"""A runtime without processes: containers follow the scripts in their pods' annotations.

Time comes from the clock that is passed in, so a test can run a day in a second. Starting a process
never belongs here. Tests: tests/runtime/simulated.
"""

from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime

__all__ = ["SimulatedRuntime"]
