"""The pods whose processes run, by their records, for commands beside or without an agent."""

from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.runtime.process.records.layout import pods_folder
from podstatus.runtime.process.records.models import PodRecord, ShimRecord
from podstatus.runtime.process.shim.records import POD, SHIM
from podstatus.runtime.process.state.process_identity import is_alive


def running_pods(folder: Path) -> list[str]:
    """Return the pods whose shim runs, as namespace/name. Only reads."""
    names = []
    for path in sorted(pods_folder(folder).glob(f"*/{POD}")):
        with suppress(OSError, msgspec.DecodeError):
            record = decode_json(path.read_bytes(), PodRecord)
            shim = decode_json(path.with_name(SHIM).read_bytes(), ShimRecord)
            if is_alive(shim.process):
                names.append(f"{record.namespace}/{record.name}")
    return names
