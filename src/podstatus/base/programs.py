"""Start programs without running code from the current folder.

The current folder may be another user's. It gets onto a search path in three ways: `python -m`
puts it first on `sys.path`, an empty entry of PATH, PYTHONPATH or LD_LIBRARY_PATH stands for it,
and a relative entry of PATH begins in it.

Upstream: exec.ErrDot of Go's os/exec, by which kubectl and the kubelet refuse such a program.
"""

import os
import shutil
import sys
from collections.abc import Mapping

_SEARCH_PATHS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
"""Variables in which an empty entry stands for the current folder."""


def python_module_command(name: str) -> tuple[str, ...]:
    """The command that runs a module, with no folder put before `sys.path`."""
    return sys.executable, "-P", "-m", name


def find_program(name: str, path: str | None = None) -> str | None:
    """The absolute path of an executable; None if there is none.

    A name is looked up in the absolute folders of `path`, by default PATH; a name with a slash
    is a file, relative to the current folder if it does not begin with one.
    """
    if "/" in name:
        found = shutil.which(name)
        return None if found is None else os.path.abspath(found)  # noqa: PTH100 - keeps links
    return shutil.which(name, path=absolute_search_path(path))


def absolute_search_path(path: str | None = None) -> str:
    """A search path, by default PATH, without empty and relative entries."""
    text = os.environ.get("PATH", os.defpath) if path is None else path
    return os.pathsep.join(entry for entry in text.split(os.pathsep) if entry.startswith("/"))


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables for a child of ours: search paths without empty entries.

    Relative entries stay: `PYTHONPATH=.` names the current folder on purpose.
    """
    cleaned = {name: _nonempty_entries(environment.get(name, "")) for name in _SEARCH_PATHS}
    kept = {name: value for name, value in environment.items() if name not in cleaned}
    return kept | {name: value for name, value in cleaned.items() if value}


def _nonempty_entries(path: str) -> str:
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry)
