"""The root directory of an agent: its lock, its subdirectories and files.

If the disk is full when the agent starts, writing the endpoints file is retried in the background.
"""

import asyncio
import errno
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import msgspec

from podstatus.agent.daemon.endpoints_file import (
    ENDPOINTS_FILE,
    AgentEndpoints,
    RootDirError,
    error_reason,
)
from podstatus.apiserver.state_dir import StateDir, StateDirError, StateDirLockedError

KUBECONFIG_FILE = "kubeconfig"
AGENT_FOLDERS = ("apiserver", "checkpoints", "logs", "outbox", "pki", "runtime")
"""Subdirectories of an agent's root directory."""
OBSERVER_FOLDERS = ("logs", "pki")
"""Subdirectories of an observer's root directory."""


class RootDir:
    """The root directory, locked until `close` or the end of the `with` block."""

    def __init__(self, path: Path, folders: Iterable[str] = AGENT_FOLDERS) -> None:
        """Create the directory and `folders` if missing, and lock it. Raises RootDirError."""
        self._folders = tuple(folders)
        try:
            self._folder = StateDir(path, used_by="agent or observer")
        except StateDirLockedError as error:
            raise RootDirError(f"{error} (--root-dir)") from error
        except StateDirError as error:
            raise RootDirError(_unusable_message(error)) from error
        self.path = self._folder.path
        self._prepare()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock of the directory."""
        self._folder.close()

    def folder(self, name: str) -> Path:
        return self.path / name

    @property
    def apiserver_log(self) -> Path:
        return self.path / "apiserver.log"

    def write_endpoints(self, endpoints: AgentEndpoints) -> None:
        """Write `endpoints.json` for the commands. Raises RootDirError."""
        self.write(ENDPOINTS_FILE, msgspec.json.format(msgspec.json.encode(endpoints)) + b"\n")

    def write_kubeconfig(self, kubeconfig: bytes) -> Path:
        """Write the kubeconfig of the embedded API server. Raises RootDirError."""
        return self.write(KUBECONFIG_FILE, kubeconfig)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if it does not exist. Raises RootDirError."""
        try:
            return self._folder.read(name)
        except StateDirError as error:
            raise RootDirError(_unusable_message(error)) from error

    def remove_endpoints(self) -> None:
        """Remove `endpoints.json`. The kubeconfig stays valid for the next start."""
        (self.path / ENDPOINTS_FILE).unlink(missing_ok=True)

    def _prepare(self) -> None:
        """Fail now if the directory is not writable, not with the first status."""
        try:
            for name in self._folders:
                (self.path / name).mkdir(mode=0o700, exist_ok=True)
            self.remove_endpoints()
            self._folder.write(".probe", b"").unlink()
        except (OSError, StateDirError) as error:
            self.close()
            raise RootDirError(_unusable_message(error)) from error

    def write(self, name: str, content: bytes) -> Path:
        """Write a file atomically and return its path. Raises RootDirError."""
        try:
            return self._folder.write(name, content)
        except StateDirError as error:
            raise RootDirError(_unusable_message(error)) from error


def _unusable_message(error: Exception) -> str:
    if isinstance(error, StateDirError):
        return f"{error}, with --root-dir"
    return f"cannot use the root directory: {error_reason(error)}; pass another --root-dir"


_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


def try_write_endpoints(root: RootDir, endpoints: AgentEndpoints) -> bool:
    """Write the endpoints file; return False if the disk is full.

    Raises RootDirError for any other failure.
    """
    try:
        root.write_endpoints(endpoints)
    except RootDirError as error:
        if is_disk_full(error):
            return False
        raise
    return True


async def retry_write_endpoints(root: RootDir, endpoints: AgentEndpoints) -> None:
    """Retry until the disk has space again; pods do not need the file. Raises RootDirError."""
    _logger.error(
        "cannot write endpoints.json because the disk is full; free disk space, the agent "
        "will retry: directory=%s",
        root.path,
    )
    while True:
        await asyncio.sleep(_RETRY_SECONDS)
        if try_write_endpoints(root, endpoints):
            return


def is_disk_full(error: BaseException | None) -> bool:
    """True if a full disk or quota caused the error; a retry may succeed."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False
