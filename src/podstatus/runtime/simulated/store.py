"""Records of simulated pods in a folder, a file for each, so that they outlive the agent.

Files are replaced as a whole. They are not forced onto the disk: they have to survive the agent,
not the machine, with which containers end anyway.
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
    """The folder, made for its owner alone; without one nothing is kept.

    One process at a time may use it. Raises RuntimeDownError where the disk does not let us.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._decoder = json_decoder(SimulatedPodRecord)

    def read(self) -> list[SimulatedPodRecord]:
        """All records that can be read; what cannot is set aside beside them."""
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
            aside = file.with_name(file.name + _DAMAGED_SUFFIX)
            logger.error(
                "record of a simulated pod is broken, set aside: file=%s error=%s", aside, error
            )
            file.replace(aside)
            return None

    def _decode(self, file: Path) -> SimulatedPodRecord:
        record = self._decoder.decode(file.read_bytes())
        if self._file(record.uid) != file:
            raise msgspec.ValidationError(f"it is about pod {record.uid!r}")
        return record

    def write(self, record: SimulatedPodRecord) -> None:
        """Make this what is kept of its pod."""
        if self._folder is None:
            return
        file = self._file(record.uid)
        new = file.with_name(file.name + _TEMPORARY_SUFFIX)
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as writer:
                writer.write(msgspec.json.encode(record))
            new.replace(file)
        except OSError as error:
            raise _unusable_error(file, error) from error

    def remove(self, uid: PodUID) -> None:
        """Keep nothing of this pod."""
        if self._folder is None:
            return
        file = self._file(uid)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise _unusable_error(file, error) from error

    def _file(self, uid: PodUID) -> Path:
        assert self._folder is not None  # noqa: S101 - asked only where there is one
        # Whoever makes pods makes their UIDs: none may lead out of the folder.
        return self._folder / (quote(uid, safe="") + _SUFFIX)


def _unusable_error(path: Path, error: OSError) -> RuntimeDownError:
    why = error.strerror or str(error)
    return RuntimeDownError(
        f"the simulated runtime cannot use {path}: {why}; make it writable, or name another folder"
    )
