"""Evictions in progress, one file for each pod: an eviction that began is completed.

    DIR/1b4e28ba-2fa1-11d2-883f-0016d3cca427.json
    {"data":"{\\"uid\\":…,\\"reason\\":\\"Evicted\\",…}","checksum":541667569}

A record is stored before the pod is terminated, and removed once the API server has the final
status. Upstream has no records: a kubelet that ends in between restarts the pod's containers, and
decides again.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.checkpoint.atomic_dir import AtomicDirectory
from podstatus.checkpoint.errors import CheckpointError
from podstatus.checkpoint.formats.go_json_scanner import MalformedError
from podstatus.checkpoint.formats.v1_36 import unwrap, wrap
from podstatus.kube.objects.pod import PodUID
from podstatus.workers.lifecycle.state_machine import Eviction, RequestedEviction

logger = logging.getLogger(__name__)

_SUFFIX = ".json"
_DAMAGED_SUFFIX = ".damaged"
_PLAIN_UID = re.compile("[0-9a-zA-Z][-0-9a-zA-Z]{0,99}")


class _Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    uid: str
    reason: str
    message: str
    is_disruption: bool
    grace_seconds: int


class EvictionRecords:
    """The evictions that have begun and are not known to the API server. For one event loop."""

    def __init__(self, directory: Path) -> None:
        """Load the records of previous agents; damaged and unreadable ones are logged."""
        self._directory = AtomicDirectory(directory)
        self._records = dict(self._load())

    def find(self, uid: PodUID) -> RequestedEviction | None:
        """Return the eviction of a pod; None if there is no record."""
        return self._records.get(uid)

    def uids(self) -> tuple[PodUID, ...]:
        return tuple(self._records)

    async def store(self, uid: PodUID, requested: RequestedEviction) -> None:
        """Store a record. If the disk is full, the eviction goes on without one, as upstream."""
        text = wrap(msgspec.json.encode(_to_record(uid, requested)).decode())
        try:
            await asyncio.to_thread(self._directory.write, _file_name(uid), text)
        except CheckpointError as error:
            logger.warning("cannot record eviction, a crash would undo it: error=%s", error)
        else:
            self._records[uid] = requested

    async def remove(self, uid: PodUID) -> None:
        """Remove the record of a pod; a failure is logged, and `uids` has it for a retry."""
        try:
            await asyncio.to_thread(self._directory.remove, _file_name(uid))
        except CheckpointError as error:
            logger.warning("cannot remove record of eviction, will retry: error=%s", error)
        else:
            self._records.pop(uid, None)

    def _load(self) -> Iterator[tuple[PodUID, RequestedEviction]]:
        try:
            self._directory.remove_temporary_files("*")
            names = self._directory.list_names(_SUFFIX)
        except (CheckpointError, OSError) as error:
            logger.error("cannot read records of evictions: error=%s", error)
            return
        for name in names:
            try:
                if (text := self._directory.read(name)) is not None:
                    record = decode_json(unwrap(text).encode(), _Record)
                    yield PodUID(record.uid), _to_eviction(record)
            except CheckpointError as error:
                logger.error("cannot read record of eviction: error=%s", error)
            except (MalformedError, msgspec.DecodeError) as error:
                self._quarantine(name, error)

    def _quarantine(self, name: str, cause: Exception) -> None:
        path = self._directory.path(name)
        logger.error("record of eviction is damaged: file=%s error=%s", path, cause)
        try:
            self._directory.rename(name, name + _DAMAGED_SUFFIX)
        except CheckpointError as error:
            logger.error("cannot rename damaged record of eviction: error=%s", error)


def _to_record(uid: PodUID, requested: RequestedEviction) -> _Record:
    eviction = requested.eviction
    return _Record(
        uid=uid,
        reason=eviction.reason,
        message=eviction.message,
        is_disruption=eviction.is_disruption,
        grace_seconds=requested.grace_seconds,
    )


def _to_eviction(record: _Record) -> RequestedEviction:
    return RequestedEviction(
        eviction=Eviction(
            reason=record.reason, message=record.message, is_disruption=record.is_disruption
        ),
        grace_seconds=record.grace_seconds,
    )


def _file_name(uid: PodUID) -> str:
    """Return the file name for a UID; a hash if the UID is not a safe file name."""
    if _PLAIN_UID.fullmatch(uid):
        return uid + _SUFFIX
    return "sha256-" + hashlib.sha256(uid.encode(errors="surrogatepass")).hexdigest() + _SUFFIX
