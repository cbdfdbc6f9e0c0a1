"""The runtime that the settings name: one of ours, or a class of somebody else's.

`my_runtime:MyRuntime` is imported, and called with the folder for its records.
"""

import importlib
from pathlib import Path

from podstatus.agent.run import MISTAKE, CannotRunError
from podstatus.base.clock import Clock
from podstatus.runtime.port import Runtime, RuntimeDownError
from podstatus.runtime.simulated.adapter import SimulatedRuntime


def find_runtime(name: str, folder: Path, clock: Clock) -> Runtime:
    """The runtime of this name. Raises CannotRunError."""
    try:
        if ":" not in name:
            return SimulatedRuntime(clock, folder=folder)
        return _made(name, folder)
    except RuntimeDownError as error:
        raise CannotRunError(str(error), code=MISTAKE) from error


def _made(name: str, folder: Path) -> Runtime:
    module, _, attribute = name.partition(":")
    try:
        make = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _cannot(
            name, f"{error}; name a module on PYTHONPATH and a class in it, as in my_runtime:Mine"
        ) from error
    try:
        runtime: Runtime = make(folder)
    except RuntimeDownError:
        raise
    except Exception as error:
        raise _cannot(
            name, f"{type(error).__name__}: {error}; it is called with the folder for its records"
        ) from error
    names = [n for n in vars(Runtime) if not n.startswith("_")]
    if missing := [n for n in names if not hasattr(runtime, n)]:
        raise _cannot(name, f"what it makes lacks {', '.join(missing)}; see docs/runtimes.md")
    return runtime


def _cannot(name: str, why: str) -> CannotRunError:
    return CannotRunError(f"--runtime: {name} cannot be used: {why}", code=MISTAKE)
