"""Start programs without running code from the current directory.

The current directory may belong to another user. It becomes part of a search path in three ways:
`python -m` puts it first on `sys.path`; an empty entry of PATH, PYTHONPATH or LD_LIBRARY_PATH means
it; and a relative entry of PATH is resolved against it.

Upstream: exec.ErrDot of Go's os/exec, by which kubectl and the kubelet reject such a program.
"""

import os
import shutil
import sys
from collections.abc import Mapping

_SEARCH_PATHS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
"""Variables in which an empty entry means the current directory."""


def python_module_command(name: str) -> tuple[str, ...]:
    """Return the command that runs a module without adding a directory to `sys.path`."""
    return sys.executable, "-P", "-m", name


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of an executable, None if there is none.

    A plain name is searched for in the absolute directories of `path`, by default PATH. A name with
    a slash is a file name; a relative one is resolved against the current directory.
    """
    if "/" in name:
        program = shutil.which(name)
        return None if program is None else os.path.abspath(program)  # noqa: PTH100 - keeps links
    return shutil.which(name, path=absolute_search_path(path))


def absolute_search_path(path: str | None = None) -> str:
    """Return a search path, by default PATH, without empty and relative entries."""
    text = os.environ.get("PATH", os.defpath) if path is None else path
    return os.pathsep.join(entry for entry in text.split(os.pathsep) if entry.startswith("/"))


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a child process: search paths without empty entries.

    Relative entries are kept: `PYTHONPATH=.` means the current directory explicitly.
    """
    cleaned = {name: _nonempty_entries(environment.get(name, "")) for name in _SEARCH_PATHS}
    others = {name: value for name, value in environment.items() if name not in cleaned}
    return others | {name: value for name, value in cleaned.items() if value}


def _nonempty_entries(path: str) -> str:
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry)
