"""Launch requests of the agent that no monitor has taken yet."""

from collections.abc import Iterator
from pathlib import Path

from .records import EXIT, LAUNCH, STARTED, LaunchSpec, exit_record, read_launch, write_record
from .stderr_log import describe_error, log_error
from .wall_clock import wall_nanos


class LaunchQueue:
    """The launches of one sandbox, each returned once."""

    def __init__(self, containers: Path, sandbox_id: str) -> None:
        self._containers = containers
        self._sandbox_id = sandbox_id
        self._seen: set[str] = set()

    def take_new(self) -> Iterator[tuple[Path, LaunchSpec]]:
        """Yield the launches that are new since the last call, with their folders, oldest first."""
        folders = {path.name: path for path in self._folders() if (path / LAUNCH).exists()}
        new = [folders[name] for name in folders.keys() - self._seen]
        self._seen &= folders.keys()
        for folder in sorted(new, key=_age):
            self._seen.add(folder.name)
            launch = self._read(folder)
            if launch is not None and launch.sandbox_id == self._sandbox_id:
                yield folder, launch

    def _folders(self) -> list[Path]:
        try:
            return list(self._containers.iterdir())
        except FileNotFoundError:
            return []

    def _read(self, folder: Path) -> LaunchSpec | None:
        if (folder / STARTED).exists() or (folder / EXIT).exists():
            return None
        try:
            return read_launch(folder)
        except (OSError, TypeError, ValueError) as error:
            record_start_error(
                folder,
                f"{LAUNCH} is unusable: {describe_error(error)}",
                finished_at=_age(folder),
            )
            return None


def record_start_error(folder: Path, reason: str, *, finished_at: int) -> None:
    """Record that an attempt could not be started."""
    log_error(f"cannot launch {folder.name}: {reason}")
    record = exit_record(128, "StartError", message=reason, finished_at=finished_at)
    try:
        write_record(folder / EXIT, record, once=True)
    except OSError as error:
        log_error(f"cannot record the failed start: {error}")


def record_lost_container(folder: Path) -> bool:
    """Record the exit of an attempt whose monitor was killed; return whether a record exists.

    For an attempt with a start record, the agent itself notices that the monitor is gone.
    """
    if (folder / STARTED).exists() or (folder / EXIT).exists() or not folder.exists():
        return True
    message = "The container could not be located when the pod was terminated"
    record = exit_record(137, "ContainerStatusUnknown", message=message, finished_at=wall_nanos())
    try:
        write_record(folder / EXIT, record, once=True)
    except OSError as error:
        log_error(f"cannot record the lost container {folder.name}: {error}")
        return False
    return True


def _age(folder: Path) -> int:
    try:
        return (folder / LAUNCH).stat().st_mtime_ns
    except OSError:
        return 0
