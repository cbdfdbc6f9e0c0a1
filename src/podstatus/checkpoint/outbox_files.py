"""Final statuses that are not acknowledged by the API server yet, one file for each pod.

    DIR/1b4e28ba-2fa1-11d2-883f-0016d3cca427.json
    {"data":"{\\"name\\":\\"p\\",\\"namespace\\":\\"n\\",\\"status\\":{…},\\"uid\\":…}","checksum":541667569}

The envelope is that of the kubelet's checkpoints. Upstream has no outbox: a kubelet that dies
before it reported how a pod ended asks its container runtime again.
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
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.meta import NamedPod
from podstatus.kube.objects.pod import PodUID, check_uid
from podstatus.kube.objects.pod_status import PodStatus

logger = logging.getLogger(__name__)

_SUFFIX = ".json"
_DAMAGED_SUFFIX = ".damaged"
_PLAIN_UID = re.compile("[0-9a-zA-Z][-0-9a-zA-Z]{0,99}")
_LOCK_COUNT = 16
"""Number of pods that may be written concurrently: a disk handles several writes at once."""


class PendingStatus(NamedPod, Protocol):
    """The status of a pod and the identity of the pod; `uid` is the one that the node knows."""

    @property
    def status(self) -> PodStatus:
        """The status to be delivered."""

    @property
    def finished(self) -> bool:
        """Whether the whole pod has ended, not only a container of it."""


E = TypeVar("E", bound=PendingStatus)


class _OutboxRecord(Wire, frozen=True, kw_only=True):
    uid: str = field(default_factory=str)
    namespace: str = field(default_factory=str)
    name: str = field(default_factory=str)
    status: PodStatus = field(default_factory=PodStatus)
    alive: bool = False
    """True if the pod had not ended; omitted otherwise."""


class FileOutbox(Generic[E]):
    """Stores final statuses in a directory: the status manager's port `Outbox`.

        outbox = FileOutbox("/var/lib/podstatus/outbox", OutboxEntry)

    `entry_type` constructs the entries that `load` returns, from keywords. Changes are on disk when
    `store` and `drop` return; otherwise they raise CheckpointWriteError. Times are stored in whole
    seconds, as in API objects. Thread-safe; only one process at a time may use the directory.
    """

    def __init__(self, directory: str | os.PathLike[str], entry_type: Callable[..., E]) -> None:
        if not os.fspath(directory):
            raise ValueError("the directory name is empty; use `.` for the current directory")
        self._directory = AtomicDirectory(Path(directory).absolute())
        self._entry_type = entry_type
        self._locks = [threading.Lock() for _ in range(_LOCK_COUNT)]

    def load(self) -> list[E]:
        """Return the entries that an earlier process of this node could not deliver.

        An invalid file is renamed to `*.damaged`; an unreadable file is left alone. Both are
        logged, and all other entries are returned. Raises UnreadableCheckpointError if the
        directory itself cannot be read.
        """
        self._directory.remove_temporary_files("*")
        return list(self._load_entries())

    def store(self, entry: E) -> None:
        """Store a status, replacing that of the same pod. Raises CheckpointWriteError."""
        check_uid(entry.uid)
        record = _OutboxRecord(
            uid=entry.uid,
            namespace=entry.namespace,
            name=entry.name,
            status=entry.status,
            alive=not entry.finished,
        )
        text = wrap(encode_document(to_document(record)).decode())
        with self._lock_for(entry.uid):
            self._directory.write(_file_name(entry.uid), text)

    def drop(self, uid: PodUID) -> None:
        """Remove the status of a pod if there is one. Raises CheckpointWriteError."""
        with self._lock_for(uid):
            self._directory.remove(_file_name(uid))

    def _lock_for(self, uid: str) -> threading.Lock:
        """Return the lock that orders the writes and the removals of a pod."""
        return self._locks[hash(uid) % _LOCK_COUNT]

    def _load_entries(self) -> Iterator[E]:
        for name in self._directory.list_names(_SUFFIX):
            try:
                text = self._directory.read(name)
                if text is not None:
                    yield self._decode(name, text)
            except CheckpointError as error:
                logger.error(
                    "cannot read final status, the termination of the pod may not be reported: "
                    "error=%s",
                    error,
                )
            except (MalformedError, DecodeError) as error:
                self._quarantine(name, error)

    def _decode(self, name: str, text: bytes) -> E:
        record = decode(unwrap(text), _OutboxRecord)
        if _file_name(record.uid) != name:
            raise MalformedError(f"it is about the pod {record.uid[:80]!r}")
        return self._entry_type(
            uid=PodUID(record.uid),
            namespace=record.namespace,
            name=record.name,
            status=record.status,
            finished=not record.alive,
        )

    def _quarantine(self, name: str, cause: Exception) -> None:
        path = self._directory.path(name)
        logger.error(
            "final status is damaged, the termination of the pod may not be reported: "
            "file=%s error=%s",
            path,
            cause,
        )
        try:
            self._directory.rename(name, name + _DAMAGED_SUFFIX)
        except CheckpointWriteError as error:
            logger.error("cannot rename damaged final status: error=%s", error)


def _file_name(uid: str) -> str:
    """Return the file name for a UID; a hash if the UID is not a safe file name."""
    if not _PLAIN_UID.fullmatch(uid):
        uid = "sha256-" + hashlib.sha256(uid.encode(errors="surrogatepass")).hexdigest()
    return uid + _SUFFIX
