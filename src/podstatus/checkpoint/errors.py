"""Errors of checkpoints, classed by what the caller can do.

CheckpointError
├── UnreadableCheckpointError  the file cannot be read: fix its type or permissions
├── DamagedCheckpointError     the file is not a valid checkpoint: an operator must decide
├── CheckpointWriteError       the change was not stored and has no effect: retry later
└── UnsupportedStateError      the file format cannot hold the change: use another format

A file that is unreadable or damaged is never modified.
"""

from pathlib import Path


class CheckpointError(Exception):
    """The state could not be restored or stored; `path` is the file concerned."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


class UnreadableCheckpointError(CheckpointError):
    """The file exists, or may exist, but cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            path,
            f"cannot read the checkpoint {path}: {reason}; make it a regular file that this user "
            "can read, then start again",
        )


class DamagedCheckpointError(CheckpointError):
    """The file is not a checkpoint, or not a complete one."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            path,
            f"the checkpoint {path} is damaged: {reason}; drain the node, move the file away and "
            "start again, or put back a good copy of it",
        )


class CheckpointWriteError(CheckpointError):
    """The file could not be written. The file and the state in memory are unchanged.

    If `replaced` is true, the file has its new content, but may lose it in a power failure; the
    state in memory is unchanged, and the next change writes the file again. `stored` names the
    files that the same change had already written; their parts of the change are in effect.
    """

    stored: tuple[str, ...] = ()

    def __init__(self, path: Path, reason: str, *, replaced: bool = False) -> None:
        effect = "the file was replaced, but may be lost" if replaced else "nothing was changed"
        super().__init__(
            path,
            f"cannot write the checkpoint {path}: {reason}; {effect}; free disk space or make the "
            "directory writable, then try again",
        )
        self.replaced = replaced


class UnsupportedStateError(CheckpointError):
    """The format of the file has no field for the value to be stored."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            path,
            f"cannot store this in {path}: {reason}; nothing was changed; use the format of v1.36",
        )
