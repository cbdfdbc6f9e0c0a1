"""The marker beside the database: which cluster the database holds, and up to which version.

    {"cluster": "…", "boot": "…", "version": 42}

A database that is empty, another one, or older than its marker has lost objects. A server that
took it for the truth would say that there are no pods, and their containers would be ended. So
`classify_database` refuses it, and a message says what to do.

The version is written after every change, in place and without a sync: it survives a kill. A power
cut may take the last changes from the database (`synchronous=NORMAL`) and not from the marker;
then the machine has another boot ID, nothing runs, and an older database is used.
"""

import enum
import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.apiserver.state_dir import write_private
from podstatus.base.msgspec_json import decode_json

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_BYTES = 1024
_MAX_VERSION = 2**63 - 1
VERSION_BUMP = 1_000_000
"""Added to the resource version of a database that may be an older copy, as `etcdutl snapshot
restore --bump-revision` does: clients must not see a version twice. More changes than there are
between two copies."""


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What the marker says of the database."""

    cluster: str
    boot: str
    """The boot ID of the machine when it was written; empty if that is not known."""
    version: int
    """The newest resource version that was acknowledged."""


class MarkerError(Exception):
    """The marker cannot be used; the message says why and what to do."""


class DatabaseState(enum.Enum):
    """What a database is, given its marker."""

    NEW = "new"
    """Nothing was ever stored: a cluster begins."""
    CURRENT = "known"
    """The one the marker was written for, with all that was acknowledged."""
    UNMARKED = "unmarked"
    """It holds a cluster, and no marker says up to which version: it may be an older copy."""
    BEHIND = "behind"
    """Older than the marker, after a boot: a power cut may have taken the last changes."""
    EMPTY = "empty"
    OTHER_CLUSTER = "another"
    ROLLED_BACK = "older"


def classify_database(
    cluster: str, version: int, marker: Marker | None, *, has_marker: bool, boot: str
) -> DatabaseState:
    """What a database is that holds this cluster (empty: none) up to this version.

    `has_marker` says whether there is a marker at all: `marker` is also None if it is unreadable.
    """
    if not cluster and not version:
        return DatabaseState.EMPTY if has_marker else DatabaseState.NEW
    if marker is None:
        return DatabaseState.UNMARKED
    if cluster != marker.cluster:
        return DatabaseState.OTHER_CLUSTER
    if version >= marker.version:
        return DatabaseState.CURRENT
    return DatabaseState.ROLLED_BACK if boot and boot == marker.boot else DatabaseState.BEHIND


def rejection_message(
    state: DatabaseState, database: Path, version: int, marker: Marker | None
) -> str:
    """Why such a database is not used, and what to do; empty if it is used."""
    path = marker_path(database)
    restore = f"restore it from a backup with its {database.name}-wal (delete a stale one)"
    match state:
        case DatabaseState.EMPTY:
            return (
                f"{database} is empty or missing, but {path} says that it held a cluster: "
                f"{restore}, or remove {path} to begin with an empty cluster; an agent whose "
                "containers still run then asks for one more file to be removed, and ends them"
            )
        case DatabaseState.OTHER_CLUSTER:
            return (
                f"{database} is not the database of which {path} says that it belongs here: "
                f"{restore}, or remove {path} to use the one that is there; an agent whose "
                "containers still run then asks for one more file to be removed, and ends them"
            )
        case DatabaseState.ROLLED_BACK:
            newest = 0 if marker is None else marker.version
            return (
                f"{database} holds changes up to version {version}, but {newest} was "
                f"acknowledged (see {path}): restore one that is as new, with its "
                f"{database.name}-wal, or remove {path} to use this one; pods that were created "
                "since then end, with their containers"
            )
        case _:
            return ""


class MarkerFile:
    """The marker of one database. Used by one thread."""

    def __init__(self, database: Path) -> None:
        self._path = marker_path(database)
        self._name = str(self._path)
        self._written_stat: tuple[int, int, int] | None = None
        """Device, inode and size of the file that was written last."""
        self._boot = boot_id()
        self._file: int | None = None
        self._cluster = ""

    def read(self) -> tuple[Marker | None, bool]:
        """What it says, and whether it is there: one that is unreadable says nothing.

        Raises MarkerError.
        """
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None, False
        except OSError as error:
            raise self._marker_error(error) from error
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise MarkerError(f"{self._path} is not a regular file; remove it, and try again")
            return decode_json(os.read(file, _MAX_BYTES), Marker), True
        except msgspec.DecodeError:
            return None, True
        finally:
            os.close(file)

    def write(self, cluster: str, version: int) -> None:
        """Have it on the disk, file and folder. Raises MarkerError."""
        self._cluster = cluster
        try:
            write_private(self._path, self._encode(version))
            _fsync_dir(self._path.parent)
            self.close()
            self._file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            made = os.fstat(self._file)
            self._written_stat = made.st_dev, made.st_ino, made.st_size
        except OSError as error:
            raise self._marker_error(error) from error

    def advance(self, version: int) -> None:
        """A version was acknowledged. A disk that does not take this loses a check, not data."""
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, self._encode(version), 0)

    def is_unchanged(self) -> bool:
        """Whether the file is the one that was written last."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 - with every change
        except OSError:
            return False
        return (found.st_dev, found.st_ino, found.st_size) == self._written_stat

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    @property
    def boot(self) -> str:
        """The boot ID of this machine."""
        return self._boot

    def _encode(self, version: int) -> bytes:
        """Always of the same length, so that it is overwritten as a whole."""
        marker = Marker(cluster=self._cluster, boot=self._boot, version=version)
        room = len(str(_MAX_VERSION)) - len(str(version))
        return msgspec.json.encode(marker) + b" " * room + b"\n"

    def _marker_error(self, error: OSError) -> MarkerError:
        why = (error.strerror or str(error)).lower()
        return MarkerError(f"cannot use {self._path}: {why}; make room, or let us write there")


def marker_path(database: Path) -> Path:
    """Where the marker of a database is."""
    return database.with_name(f"{database.name}-marker")


def boot_id() -> str:
    """What is different after every boot of the machine; empty if it is not known."""
    with suppress(OSError):
        return _BOOT_ID.read_text().strip()
    return ""


def _fsync_dir(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
