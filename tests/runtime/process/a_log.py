"""A minimal monitor: writes and rotates a container's log as the real one does."""

from pathlib import Path

from podstatus.kube.scalars.time import Time
from podstatus.runtime.process.logs.cri_format import log_time
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import ExitRecord, LaunchRecord

START = Time.parse("2026-11-15T20:00:00Z").unix_nanos()


class ALog:
    """A log whose entries are one second apart."""

    def __init__(self, folder: Path, *, keep: int = 5) -> None:
        self.place = ContainerFolder(folder)
        self.keep = keep
        self._seconds = 0
        self._put_away = 0

    def entry(self, text: str, stream: str = "stdout", tag: str = "F") -> bytes:
        time = log_time(START + self._seconds * 10**9)
        self._seconds += 1
        return b"%s %s %s %s\n" % (time, stream.encode(), tag.encode(), text.encode())

    def write(self, *texts: str, stream: str = "stdout", tag: str = "F") -> None:
        self.write_raw(b"".join(self.entry(text, stream, tag) for text in texts))

    def write_raw(self, data: bytes) -> None:
        with self.place.log.open("ab") as file:
            file.write(data)

    def put_away(self) -> None:
        self._put_away += 1
        log = self.place.log
        log.rename(log.with_name(f"{log.name}.20261115-200000.{self._put_away:09}"))
        for old in sorted(log.parent.glob("0.log.*"))[: -self.keep + 1]:
            old.unlink()


def a_launch(**changes: object) -> LaunchRecord:
    fields: dict[str, object] = {
        "id": "process://1",
        "container": "a",
        "restart_count": 0,
        "sandbox_id": "s",
        "created_at": START,
        "image": "busybox",
        "stop_signal": 15,
        "message_path": "",
        "message_fallback": False,
        "argv": ("sleep", "600"),
        "env": {},
        "cwd": "/",
        "log_max_bytes": 10 << 20,
        "log_max_files": 5,
    }
    return LaunchRecord(**fields | changes)  # type: ignore[arg-type]


def an_exit(code: int, *, reason: str = "", message: str = "") -> ExitRecord:
    return ExitRecord(
        exit_code=code,
        reason=reason or ("Error" if code else "Completed"),
        message=message,
        started_at=START,
        finished_at=START,
    )
