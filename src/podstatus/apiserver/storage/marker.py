"""The marker file beside the database: the cluster it holds, and the newest version.

    {"cluster": "…", "boot": "…", "version": 42}

A database that is empty, of another cluster, or older than its marker has lost objects. A server
that served it would report no pods, and the agent would stop their containers. So
`classify_database` detects this, and `rejection_message` says what to do.

The version is written after every change, in place and without fsync: it survives SIGKILL. A power
loss may take the last changes from the database (`synchronous=NORMAL`) but not from the marker;
the boot ID then differs, no container runs, and the older database is accepted.
"""

import enum
import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.base.atomic_file import replace_file, sync_directory
from podstatus.base.msgspec_json import decode_json

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_BYTES = 1024
_MAX_VERSION = 2**63 - 1
VERSION_BUMP = 1_000_000
"""Added to the resource version of a database that may be an older copy.

Clients must not see a version twice; `etcdutl snapshot restore --bump-revision` does the same.
Larger than the number of changes between two copies.
"""


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    cluster: str
    boot: str
    """The boot ID of the machine at the time of writing; empty if unknown."""
    version: int
    """The newest acknowledged resource version."""


class StorageError(Exception):
    """The database or its marker cannot be used; the message says why and what to do."""


class DatabaseState(enum.Enum):
    """The state of a database relative to its marker."""

    NEW = "new"
    """Nothing was ever stored: a new cluster."""
    CURRENT = "current"
    """The database of the marker, with every acknowledged change."""
    UNMARKED = "unmarked"
    """Holds a cluster, but there is no marker: it may be an older copy."""
    BEHIND = "behind"
    """Older than the marker, after a reboot: a power loss may have taken the last changes."""
    EMPTY = "empty"
    OTHER_CLUSTER = "other cluster"
    ROLLED_BACK = "rolled back"


def classify_database(
    cluster: str, version: int, marker: Marker | None, *, has_marker: bool, boot: str
) -> DatabaseState:
    """Classify a database with this cluster ID (empty: none) and newest version.

    `marker` is None if it is missing or unreadable; `has_marker` tells the two apart.
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
    """Return why the database is rejected and what to do; empty if it is accepted."""
    path = marker_path(database)
    restore = f"restore it from a backup with its {database.name}-wal (delete a stale one)"
    match state:
        case DatabaseState.EMPTY:
            return (
                f"{database} is empty or missing, but {path} says that it held a cluster; "
                f"{restore}, or remove {path} to start with an empty cluster: an agent with "
                "running containers then asks you to remove one more file, and stops them"
            )
        case DatabaseState.OTHER_CLUSTER:
            return (
                f"{database} is not the database that {path} was written for; "
                f"{restore}, or remove {path} to use the present one: an agent with running "
                "containers then asks you to remove one more file, and stops them"
            )
        case DatabaseState.ROLLED_BACK:
            newest = 0 if marker is None else marker.version
            return (
                f"{database} holds changes up to version {version}, but version {newest} was "
                f"acknowledged (see {path}); restore a database at least as new, with its "
                f"{database.name}-wal, or remove {path} to use this one: pods created since "
                "then are stopped with their containers"
            )
        case _:
            return ""


class MarkerFile:
    """The marker file of one database. Not thread-safe."""

    def __init__(self, database: Path) -> None:
        self._path = marker_path(database)
        self._name = str(self._path)
        self._written_stat: tuple[int, int, int] | None = None
        """Device, inode and size of the file at the last write."""
        self.boot = boot_id()
        """The boot ID of this machine; empty if unknown."""
        self._file: int | None = None
        self._cluster = ""

    def read(self) -> tuple[Marker | None, bool]:
        """Return the marker (None if missing or unreadable), and whether the file exists.

        Raises StorageError.
        """
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None, False
        except OSError as error:
            raise self._unusable(error) from error
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise StorageError(f"{self._path} is not a regular file; remove it, and try again")
            return decode_json(os.read(file, _MAX_BYTES), Marker), True
        except msgspec.DecodeError:
            return None, True
        finally:
            os.close(file)

    def write(self, cluster: str, version: int) -> None:
        """Replace the marker, synced to disk with its directory. Raises StorageError."""
        self._cluster = cluster
        try:
            replace_file(self._path, self._encode(version))
            sync_directory(self._path.parent)
            self.close()
            self._file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            stats = os.fstat(self._file)
            self._written_stat = stats.st_dev, stats.st_ino, stats.st_size
        except OSError as error:
            raise self._unusable(error) from error

    def advance(self, version: int) -> None:
        """Record an acknowledged version.

        Best effort: a failure weakens the check, no data is lost.
        """
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, self._encode(version), 0)

    def is_unchanged(self) -> bool:
        """Return whether the file is still the one written last."""
        try:
            stats = os.stat(self._name)  # noqa: PTH116 - called for every change
        except OSError:
            return False
        return (stats.st_dev, stats.st_ino, stats.st_size) == self._written_stat

    def close(self) -> None:
        """Close the file; `advance` does nothing afterwards."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _encode(self, version: int) -> bytes:
        """Encode with constant length, so that an overwrite in place replaces everything."""
        marker = Marker(cluster=self._cluster, boot=self.boot, version=version)
        padding = len(str(_MAX_VERSION)) - len(str(version))
        return msgspec.json.encode(marker) + b" " * padding + b"\n"

    def _unusable(self, error: OSError) -> StorageError:
        reason = (error.strerror or str(error)).lower()
        return StorageError(
            f"cannot use {self._path}: {reason}; free disk space, or make the directory writable"
        )


def marker_path(database: Path) -> Path:
    return database.with_name(f"{database.name}-marker")


def boot_id() -> str:
    """Return the kernel's boot ID, which changes with every boot; empty if unknown."""
    with suppress(OSError):
        return _BOOT_ID.read_text().strip()
    return ""
