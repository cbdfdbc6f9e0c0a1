"""What the agent wants started: launches that nobody has begun with."""

from collections.abc import Iterator
from pathlib import Path

from .records import EXIT, LAUNCH, STARTED, Launch, exit_record, read_launch, write_record
from .stderr_log import complain, describe
from .wall_clock import wall_nanos


class Launches:
    """The launches of one sandbox, each of them once."""

    def __init__(self, containers: Path, sandbox_id: str) -> None:
        self._containers = containers
        self._sandbox_id = sandbox_id
        self._seen: set[str] = set()

    def new(self) -> Iterator[tuple[Path, Launch]]:
        """Those that were not there the last time, with their folders; the older ones first."""
        folders = {path.name: path for path in self._folders() if (path / LAUNCH).exists()}
        found = [folders[name] for name in folders.keys() - self._seen]
        self._seen &= folders.keys()
        for folder in sorted(found, key=_age):
            self._seen.add(folder.name)
            launch = self._read(folder)
            if launch is not None and launch.sandbox_id == self._sandbox_id:
                yield folder, launch

    def _folders(self) -> list[Path]:
        try:
            return list(self._containers.iterdir())
        except FileNotFoundError:
            return []

    def _read(self, folder: Path) -> Launch | None:
        if (folder / STARTED).exists() or (folder / EXIT).exists():
            return None
        try:
            return read_launch(folder)
        except (OSError, TypeError, ValueError) as error:
            refuse(folder, f"{LAUNCH} cannot be used: {describe(error)}", moment=_age(folder))
            return None


def refuse(folder: Path, why: str, *, moment: int) -> None:
    """Record that an attempt was not started."""
    complain(f"cannot launch {folder.name}: {why}")
    record = exit_record(128, "StartError", message=why, finished_at=moment)
    try:
        write_record(folder / EXIT, record, once=True)
    except OSError as error:
        complain(f"cannot record that: {error}")


def record_lost(folder: Path) -> bool:
    """Record the end of an attempt whose keeper was killed; whether somebody has recorded it.

    Of one that had said that it started the agent sees itself that its keeper is gone.
    """
    if (folder / STARTED).exists() or (folder / EXIT).exists() or not folder.exists():
        return True
    told = "The container could not be located when the pod was terminated"
    record = exit_record(137, "ContainerStatusUnknown", message=told, finished_at=wall_nanos())
    try:
        write_record(folder / EXIT, record, once=True)
    except OSError as error:
        complain(f"cannot record that {folder.name} is lost: {error}")
        return False
    return True


def _age(folder: Path) -> int:
    try:
        return (folder / LAUNCH).stat().st_mtime_ns
    except OSError:
        return 0
