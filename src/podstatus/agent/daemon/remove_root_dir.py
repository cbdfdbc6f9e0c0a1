"""Remove what an agent has written to its root directory, and nothing else."""

from pathlib import Path

from podstatus.agent.daemon.root_dir import AGENT_FOLDERS
from podstatus.runtime.process.paths.safe_paths import remove_tree

_FILES = (
    "alerts.db*",
    "apiserver.log*",
    "endpoints.json",
    "history.db*",
    "kubeconfig",
    "restarts.jsonl",
    "server.json",
    "start.json",
    "lock",
)
"""The lock last: until then, no agent can start there."""


def remove_root_dir(folder: Path) -> list[str]:
    """Remove the files of an agent; return the names of other files, which stay.

    The directory itself is removed if it is empty then. Links are not followed. The caller holds
    the lock of the directory. Raises OSError.
    """
    for name in AGENT_FOLDERS:
        remove_tree(folder / name)
    for pattern in _FILES:
        for path in folder.glob(pattern):
            path.unlink()
    if remaining := sorted(path.name for path in folder.iterdir()):
        return remaining
    folder.rmdir()
    return []
