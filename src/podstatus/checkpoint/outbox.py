"""Statuses that tell of an end and have not arrived yet, each in a file of its own.

    DIR/1b4e28ba-2fa1-11d2-883f-0016d3cca427.json
    {"data":"{\\"name\\":\\"p\\",\\"namespace\\":\\"n\\",\\"status\\":{…},\\"uid\\":…}","checksum":541667569}

The envelope is that of the kubelet's checkpoints. There is nothing like it upstream: a kubelet that
dies before it could say how a pod ended asks its container runtime again.
"""

import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from msgspec import field

from podstatus.checkpoint.atomic_dir import AtomicDirectory
from podstatus.checkpoint.errors import CheckpointError, CheckpointWriteError
from podstatus.checkpoint.formats.go_json_scanner import MalformedError
from podstatus.checkpoint.formats.v1_36 import unwrap, wrap
from podstatus.kube.encoding.codec import DecodeError, decode, to_document
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.encoding.wire import Wire
from podstatus.kube.objects.pod import PodUID, check_uid
from podstatus.kube.objects.pod_status import PodStatus

logger = logging.getLogger(__name__)

_SUFFIX = ".json"
_DAMAGED_SUFFIX = ".damaged"
_PLAIN_UID = re.compile("[0-9a-zA-Z][-0-9a-zA-Z]{0,99}")
_LOCK_COUNT = 16
"""So many pods may be written at the same time: a disk does several things at once."""


class PendingStatus(Protocol):
    """The status of a pod, and whose it is."""

    @property
    def uid(self) -> PodUID:
        """The UID under which the node knows the pod."""

    @property
    def namespace(self) -> str:
        """The namespace it is in."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def status(self) -> PodStatus:
        """How it ended."""

    @property
    def finished(self) -> bool:
        """Whether all of it has ended, and not only a container."""


E = TypeVar("E", bound=PendingStatus)


class _OutboxRecord(Wire, frozen=True, kw_only=True):
    """What a file says."""

    uid: str = field(default_factory=str)
    namespace: str = field(default_factory=str)
    name: str = field(default_factory=str)
    status: PodStatus = field(default_factory=PodStatus)
    alive: bool = False
    """It was not the last; not said of one that was."""


class FileOutbox(Generic[E]):
    """Keeps last statuses in a folder: the status manager's port `Outbox`.

        outbox = FileOutbox("/var/lib/podstatus/outbox", Undelivered)

    `make` puts together what `load` returns, from keywords. What was kept is on the disk when the
    call returns, and what was dropped is gone from it; otherwise they raise CheckpointWriteError.
    Times come back in whole seconds, as they travel. All methods may be called from any thread; one
    process at a time may use the folder.
    """

    def __init__(self, folder: str | os.PathLike[str], entry_type: Callable[..., E]) -> None:
        if not os.fspath(folder):
            raise ValueError("the name of the folder is empty; name one, or `.` for this one")
        self._directory = AtomicDirectory(Path(folder).absolute())
        self._entry_type = entry_type
        self._locks = [threading.Lock() for _ in range(_LOCK_COUNT)]

    def load(self) -> list[E]:
        """What an earlier life of this node could not deliver.

        A file that is no such thing is set aside under another name; one that cannot be read is
        left alone. Both are logged, and the others are loaded. Raises UnreadableCheckpointError
        if the folder itself cannot be read.
        """
        self._directory.remove_temporary_files("*")
        return list(self._load_entries())

    def store(self, entry: E) -> None:
        """Keep a status, in place of what was kept of this pod. Raises CheckpointWriteError."""
        check_uid(entry.uid)
        kept = _OutboxRecord(
            uid=entry.uid,
            namespace=entry.namespace,
            name=entry.name,
            status=entry.status,
            alive=not entry.finished,
        )
        text = wrap(encode_document(to_document(kept)).decode())
        with self._lock_for(entry.uid):
            self._directory.write(_file_name(entry.uid), text)

    def drop(self, uid: PodUID) -> None:
        """Let go of a pod's status, if there is one. Raises CheckpointWriteError."""
        with self._lock_for(uid):
            self._directory.remove(_file_name(uid))

    def _lock_for(self, uid: str) -> threading.Lock:
        """A slow write must not come after the removal that was asked for later."""
        return self._locks[hash(uid) % _LOCK_COUNT]

    def _load_entries(self) -> Iterator[E]:
        for name in self._directory.list_names(_SUFFIX):
            try:
                text = self._directory.read(name)
                if text is not None:
                    yield self._decode(name, text)
            except CheckpointError as error:
                logger.error("last status not read, the pod's end may be lost: error=%s", error)
            except (MalformedError, DecodeError) as error:
                self._quarantine(name, error)

    def _decode(self, name: str, text: bytes) -> E:
        kept = decode(unwrap(text), _OutboxRecord)
        if _file_name(kept.uid) != name:
            raise MalformedError(f"it is about the pod {kept.uid[:80]!r}")
        return self._entry_type(
            uid=PodUID(kept.uid),
            namespace=kept.namespace,
            name=kept.name,
            status=kept.status,
            finished=not kept.alive,
        )

    def _quarantine(self, name: str, cause: Exception) -> None:
        path = self._directory.path(name)
        logger.error(
            "last status damaged, the pod's end may be lost: file=%s error=%s", path, cause
        )
        try:
            self._directory.rename(name, name + _DAMAGED_SUFFIX)
        except CheckpointWriteError as error:
            logger.error("damaged last status not set aside: error=%s", error)


def _file_name(uid: str) -> str:
    """Of a UID that is no name for a file its hash."""
    if not _PLAIN_UID.fullmatch(uid):
        uid = "sha256-" + hashlib.sha256(uid.encode(errors="surrogatepass")).hexdigest()
    return uid + _SUFFIX
