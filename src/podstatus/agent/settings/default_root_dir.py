"""The root directory that all commands use by default."""

from collections.abc import Mapping
from pathlib import Path

ROOT_DIR_VARIABLE = "PODSTATUS_ROOT_DIR"
"""Read by all commands, not only by `run`."""
LOCAL_ROOT_DIR = ".podstatus"
"""The root directory of `make run`, in the current directory."""


def default_root_dir(environment: Mapping[str, str]) -> Path:
    """Return the default of `--root-dir`."""
    data = environment.get("XDG_DATA_HOME", "")
    # The XDG specification requires relative paths to be ignored.
    base = Path(data) if data.startswith("/") else Path("~/.local/share").expanduser()
    return base / "podstatus"
