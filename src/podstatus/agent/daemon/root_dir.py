"""The root directory of an agent:

its lock, its folders, and the endpoints file that commands read.

The endpoints file is written again later if the disk is full at the first try.
"""

import asyncio
import errno
import logging
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from podstatus.apiserver.state_dir import StateDir, StateDirError, StateDirLockedError
from podstatus.base.msgspec_json import decode_json

ENDPOINTS_FILE = "endpoints.json"
KUBECONFIG_FILE = "kubeconfig"
RESTARTS_FILE = "restarts.jsonl"
AGENT_FOLDERS = ("apiserver", "checkpoints", "logs", "outbox", "pki", "runtime")
"""Of an agent."""


class RootDirError(Exception):
    """The root-dir cannot be used; the message says why and what to do."""


class AgentEndpoints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where things are while the agent runs, for those who look into `endpoints.json`."""

    apiserver: str
    agent: str
    """The agent's HTTPS port."""
    health: str = ""
    """Where `/healthz` is served without TLS, if it is."""
    token: str = ""
    """For the agent; and for the API server, if that is our own."""
    kubeconfig: str = ""
    """A file for kubectl."""
    certificate_authority: str = ""
    """A file with what clients of the API server have to trust, if it is our own."""
    agent_certificate: str = ""
    """A file with what clients of the agent have to trust."""
    node: str
    """Its name; empty if it is none."""
    observes: bool = False
    """It is no node: it looks on at a cluster, and has of pods what `/v1` tells."""
    pid: int

    def __repr__(self) -> str:
        return f"Endpoints(apiserver={self.apiserver!r}, agent={self.agent!r}, …)"


class RootDir:
    """The folder, ours alone within `with`."""

    def __init__(self, path: Path, folders: Iterable[str] = AGENT_FOLDERS) -> None:
        """Make it if it is not there, with these folders, and lock it. Raises RootDirError."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the next agent have it."""
        self._folder.close()

    def folder(self, name: str) -> Path:
        """One of the folders in it."""
        return self.path / name

    @property
    def apiserver_log(self) -> Path:
        """What our own API server says."""
        return self.path / "apiserver.log"

    def write_endpoints(self, endpoints: AgentEndpoints) -> None:
        """Tell where things are. Raises RootDirError."""
        self.write(ENDPOINTS_FILE, msgspec.json.format(msgspec.json.encode(endpoints)) + b"\n")

    def write_kubeconfig(self, kubeconfig: bytes) -> Path:
        """Write the kubeconfig of our own API server; where it is. Raises RootDirError."""
        return self.write(KUBECONFIG_FILE, kubeconfig)

    def read(self, name: str) -> bytes | None:
        """What is in a file in it, None if there is none. Raises RootDirError."""
        try:
            return self._folder.read(name)
        except StateDirError as error:
            raise RootDirError(_unusable_message(error)) from error

    def remove_endpoints(self) -> None:
        """Nobody is there any more. The kubeconfig stays: the next start serves it again."""
        (self.path / ENDPOINTS_FILE).unlink(missing_ok=True)

    def _prepare(self) -> None:
        """Find out now whether it can be written to, and not with the first status."""
        try:
            for name in self._folders:
                (self.path / name).mkdir(mode=0o700, exist_ok=True)
            self.remove_endpoints()
            self._folder.write(".probe", b"").unlink()
        except (OSError, StateDirError) as error:
            self.close()
            raise RootDirError(_unusable_message(error)) from error

    def write(self, name: str, content: bytes) -> Path:
        """Make this the content of a file in it. Raises RootDirError."""
        try:
            return self._folder.write(name, content)
        except StateDirError as error:
            raise RootDirError(_unusable_message(error)) from error


def read_endpoints(root_dir: Path) -> AgentEndpoints | None:
    """What an agent told; None if none runs there. Raises RootDirError."""
    path = root_dir / ENDPOINTS_FILE
    try:
        return decode_json(path.read_bytes(), AgentEndpoints)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise RootDirError(f"cannot read {path}: {_reason(error)}") from error


def _unusable_message(error: Exception) -> str:
    if isinstance(error, StateDirError):
        return f"{error}, with --root-dir"
    return f"cannot use the root-dir: {_reason(error)}; choose another one with --root-dir"


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    why = (error.strerror or str(error)).lower()
    return f"{error.filename}: {why}" if error.filename else why


_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


def try_write_endpoints(root: RootDir, endpoints: AgentEndpoints) -> bool:
    """Tell it, if there is room for it. Raises RootDirError for anything but a full disk."""
    try:
        root.write_endpoints(endpoints)
    except RootDirError as error:
        if is_disk_full(error):
            return False
        raise
    return True


async def retry_write_endpoints(root: RootDir, endpoints: AgentEndpoints) -> None:
    """Tell it later: pods are looked after without that file. Raises RootDirError."""
    _logger.error(
        "cannot tell where the agent listens, its disk is full; make room, and it will: folder=%s",
        root.path,
    )
    while True:
        await asyncio.sleep(_RETRY_SECONDS)
        if try_write_endpoints(root, endpoints):
            return


def is_disk_full(error: BaseException | None) -> bool:
    """Whether a disk without room is behind it: that passes, and another try repairs it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False
