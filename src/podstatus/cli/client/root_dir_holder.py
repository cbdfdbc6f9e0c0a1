"""What holds the lock of a root directory: an agent, an observer or `podstatus down`."""

from pathlib import Path

from podstatus.apiserver.state_dir import LockHolder, StateDirError, lock_holder
from podstatus.cli.client.request_errors import RequestError

DOWN = "podstatus down"
"""The command of a holder that ends what an agent left."""
WAIT = "wait until it has ended"
"""The remedy while it is in progress."""


def find_holder(folder: Path) -> LockHolder | None:
    """Return the agent or observer that holds the lock, None without one.

    Raises RequestError, also while `podstatus down` holds the lock.
    """
    try:
        holder = lock_holder(folder)
    except StateDirError as error:
        raise RequestError(str(error)) from error
    if holder is not None and holder.command == DOWN:
        raise RequestError(f"{down_in_progress(folder, holder)}; {WAIT}")
    return holder


def down_in_progress(folder: Path, holder: LockHolder) -> str:
    """Say that the node of the directory is being taken down; the remedy is `WAIT`."""
    return f"{DOWN} is in progress in {folder} (pid {holder.pid}, since {holder.since})"
