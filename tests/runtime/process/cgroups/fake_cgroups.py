"""A fake of the kernel's cgroup version 2, in a plain folder."""

import errno
import os
from pathlib import Path

from podstatus.runtime.process.cgroups.folders import CgroupFolders

_FILES = {
    "cpu": {"cpu.weight": "100", "cpu.max": "max 100000"},
    "memory": {
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.oom.group": "0",
        "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0",
        "memory.current": "0",
        "memory.stat": "anon 0\nfile 0\ninactive_file 0",
    },
    "pids": {"pids.current": "0", "pids.max": "max"},
}
_ALWAYS = {
    "cgroup.procs": "",
    "cgroup.subtree_control": "",
    "cgroup.kill": "",
    "cpu.stat": "usage_usec 0",
}


class FakeCgroupFolders(CgroupFolders):
    """Enforces the kernel's rules on controllers, on processes and on removal."""

    def __init__(self, top: Path, controllers: str = "cpu memory pids", own: str = "") -> None:
        self.top = top
        self.refused: set[str] = set()
        """Names of files that cannot be written."""
        self.immortal: set[int] = set()
        self.slept = 0.0
        self._add(top, controllers.split())
        if own:
            (top / "cgroup.subtree_control").write_text(controllers)
            self.create(top / own)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def mountinfo(self) -> str:
        place = str(self.top).replace(" ", "\\040")
        return f"41 31 0:38 / {place} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

    def put(self, folder: Path, *pids: int) -> None:
        (folder / "cgroup.procs").write_text("\n".join(map(str, pids)))

    def create(self, folder: Path) -> None:
        if not folder.exists():
            folder.mkdir()
            self._add(folder, (folder.parent / "cgroup.subtree_control").read_text().split())

    def write(self, file: Path, text: str) -> None:
        if not file.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
        if file.name in self.refused:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        if file.name == "cgroup.subtree_control":
            self._hand_on(file.parent, text.removeprefix("+"))
        elif file.name == "cgroup.procs":
            self._move(file.parent, int(text))
        elif file.name == "cgroup.kill":
            for folder in self.subtree(file.parent):
                self.put(folder, *(pid for pid in self.pids(folder) if pid in self.immortal))
        else:
            file.write_text(text)

    def remove(self, folder: Path) -> None:
        if not folder.exists():
            return
        if self.pids(folder) or self.child_names(folder):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(folder))
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def _add(self, folder: Path, controllers: list[str]) -> None:
        files = {"cgroup.controllers": " ".join(controllers)} | _ALWAYS
        for controller in controllers:
            files |= _FILES[controller]
        for name, text in files.items():
            (folder / name).write_text(text)

    def _hand_on(self, folder: Path, controller: str) -> None:
        if controller not in (folder / "cgroup.controllers").read_text().split():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if folder != self.top and self.pids(folder):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        on = (folder / "cgroup.subtree_control").read_text().split()
        (folder / "cgroup.subtree_control").write_text(" ".join([*on, controller]))
        for name in self.child_names(folder):
            offered = folder / name / "cgroup.controllers"
            for file, text in _FILES[controller].items():
                (folder / name / file).write_text(text)
            offered.write_text(f"{offered.read_text()} {controller}")

    def _move(self, folder: Path, pid: int) -> None:
        for path in self.subtree(self.top):
            self.put(path, *(other for other in self.pids(path) if other != pid))
        self.put(folder, *self.pids(folder), pid)
