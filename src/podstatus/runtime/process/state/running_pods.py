"""The pods whose containers run, by their records, for commands beside or without an agent."""

from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.runtime.process.records.layout import pods_folder
from podstatus.runtime.process.records.models import PodRecord, StartRecord
from podstatus.runtime.process.shim.records import EXIT, POD, STARTED
from podstatus.runtime.process.state.process_identity import is_alive


def running_pods(folder: Path) -> list[str]:
    """Return the pods of which a container runs, as namespace/name, sorted. Only reads."""
    names = []
    for path in pods_folder(folder).glob(f"*/{POD}"):
        with suppress(OSError, msgspec.DecodeError):
            record = decode_json(path.read_bytes(), PodRecord)
            if any(map(_is_running, path.parent.glob(f"containers/*/{STARTED}"))):
                names.append(f"{record.namespace}/{record.name}")
    return sorted(names)


def _is_running(started: Path) -> bool:
    """Return whether an attempt that was started has not ended."""
    with suppress(OSError, msgspec.DecodeError):
        record = decode_json(started.read_bytes(), StartRecord)
        has_ended = started.with_name(EXIT).exists()
        return not has_ended and (is_alive(record.monitor) or is_alive(record.process))
    return False
