"""What can go wrong with a checkpoint, classed by what a caller may do.

CheckpointError
├── UnreadableCheckpointError  the system does not let us read the file: make it readable
├── DamagedCheckpointError     the file was read and is no checkpoint: a person must look at it
├── CheckpointWriteError       the change was not stored: nothing changed, try again later
└── UnsupportedStateError      the file's format cannot hold the change: use another format

A file that cannot be read, or is damaged, is left as it is.
"""

from pathlib import Path


class CheckpointError(Exception):
    """The state could not be restored or stored; `path` is the file it was about."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


class UnreadableCheckpointError(CheckpointError):
    """The file is there, or may be, but cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            path,
            f"cannot read the checkpoint {path}: {reason}; it must be a file that this user "
            "can read, "
            "in a folder: put that right, then start again",
        )


class DamagedCheckpointError(CheckpointError):
    """The file holds something else than a checkpoint that was written whole."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            path,
            f"the checkpoint {path} is damaged: {reason}; drain the node, move the file away and "
            "start again, or put back a good copy of it",
        )


class CheckpointWriteError(CheckpointError):
    """The file could not be written. It holds what it held before, and so does the state.

    With `replaced` the file is the new one, but nobody can say whether it outlives a power
    failure; the state is the old one, and the next change writes the file again. `stored` are
    the files that the same change had written before, with what they keep.
    """

    stored: tuple[str, ...] = ()

    def __init__(self, path: Path, reason: str, *, replaced: bool = False) -> None:
        found = "the file was replaced, but may be lost" if replaced else "nothing was changed"
        super().__init__(
            path,
            f"cannot write the checkpoint {path}: {reason}; {found}: make room, or a folder "
            "that can "
            "be written, then try again",
        )
        self.replaced = replaced


class UnsupportedStateError(CheckpointError):
    """The format of the file has no place for what was to be stored."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            path,
            f"cannot store this in {path}: {reason}; nothing was changed: use the format of v1.36",
        )
