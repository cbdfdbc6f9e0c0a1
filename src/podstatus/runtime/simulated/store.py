"""Records of simulated pods on disk, one file per pod, so that they outlive the agent.

Files are replaced atomically and not fsynced: they have to survive the agent, not the machine, with
which containers end anyway.
"""

import logging
import os
from pathlib import Path
from urllib.parse import quote

import msgspec

from podstatus.base.msgspec_json import json_decoder
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.simulated.model.pod_record import SimulatedPodRecord

logger = logging.getLogger(__name__)

_SUFFIX = ".json"
_DAMAGED_SUFFIX = ".broken"
_TEMPORARY_SUFFIX = ".new"


class SimulatedPodStore:
    """The record folder, mode 0700; without a folder nothing is stored.

    Only one process at a time may use it. Raises RuntimeDownError on I/O errors.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._decoder = json_decoder(SimulatedPodRecord)

    def read(self) -> list[SimulatedPodRecord]:
        """Read all records. A damaged file is logged and renamed to `*.broken`."""
        if self._folder is None:
            return []
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            records = [self._read(file) for file in sorted(self._folder.glob("*" + _SUFFIX))]
        except OSError as error:
            raise _unusable_error(self._folder, error) from error
        return [record for record in records if record is not None]

    def _read(self, file: Path) -> SimulatedPodRecord | None:
        try:
            return self._decode(file)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            renamed = file.with_name(file.name + _DAMAGED_SUFFIX)
            logger.error(
                "renamed damaged record of a simulated pod: file=%s error=%s", renamed, error
            )
            file.replace(renamed)
            return None

    def _decode(self, file: Path) -> SimulatedPodRecord:
        record = self._decoder.decode(file.read_bytes())
        if self._file(record.uid) != file:
            raise msgspec.ValidationError(f"the record belongs to pod {record.uid!r}")
        return record

    def write(self, record: SimulatedPodRecord) -> None:
        """Store the record, replacing the previous one of its pod."""
        if self._folder is None:
            return
        file = self._file(record.uid)
        temporary = file.with_name(file.name + _TEMPORARY_SUFFIX)
        try:
            descriptor = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
            )
            with os.fdopen(descriptor, "wb") as writer:
                writer.write(msgspec.json.encode(record))
            temporary.replace(file)
        except OSError as error:
            raise _unusable_error(file, error) from error

    def remove(self, uid: PodUID) -> None:
        """Remove the record of this pod, if any."""
        if self._folder is None:
            return
        file = self._file(uid)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise _unusable_error(file, error) from error

    def _file(self, uid: PodUID) -> Path:
        assert self._folder is not None  # noqa: S101 - callers check for a folder
        # UIDs come from the pods' authors: escape them, so that none leads out of the folder.
        return self._folder / (quote(uid, safe="") + _SUFFIX)


def _unusable_error(path: Path, error: OSError) -> RuntimeDownError:
    reason = error.strerror or str(error)
    return RuntimeDownError(
        f"the simulated runtime cannot use {path}: {reason}; "
        "make it writable, or choose another folder"
    )
