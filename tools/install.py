"""Installs locked requirements and podstatus itself into a virtual environment, with progress.

    python3 tools/install.py .venv requirements/run.txt

`make` runs it, once per requirements file. An environment that has pip is extended; packages that
are installed already stay. On a terminal, progress is one line that changes; in a pipe, a line per
package, and one every two seconds while a step prints nothing. Needs the standard library only.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[1]
_PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--progress-bar=off")
_PACKAGE = re.compile(
    r"(?:Collecting|Requirement already satisfied:) (\S+?)==([^\s;]+)"
    r"|Processing \S*/([\w.]+)-([\w.+!]+)-\S+\.whl"  # a local file
)
_PIN = re.compile(r"^[\w.-]+==", re.MULTILINE)
_ERASE_LINE = "\r\x1b[K"
TERMINAL_SECONDS = 0.5
PIPE_SECONDS = 2.0
"""Between two lines of a step that prints nothing itself."""


class Step:
    """A step: its title, and what happens in it; a thread shows that it is still running."""

    def __init__(self, title: str) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._describe: Callable[[], str] = str
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        _print(title)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._is_terminal:
            print(_ERASE_LINE, end="", flush=True)

    def show(self, describe: Callable[[], str]) -> None:
        """Show what happens now; `describe` is called again while nothing else happens."""
        with self._lock:
            self._describe = describe
            self._draw() if self._is_terminal else _print(f"  {describe()}")

    def _repeat(self) -> None:
        seconds = TERMINAL_SECONDS if self._is_terminal else PIPE_SECONDS
        shown = self._describe
        while not self._ended.wait(seconds):
            with self._lock:
                if self._is_terminal or self._describe is shown:
                    self._draw()
                shown = self._describe

    def _draw(self) -> None:
        seconds = f"{time.monotonic() - self._began:.0f} s"
        line = "  " + ", ".join(filter(None, (self._describe(), seconds)))
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            print(_ERASE_LINE + line[:width], end="", flush=True)
        else:
            _print(line)


def main(folder: Path, requirements: Path) -> None:
    """Install into the environment in `folder`. Exits with the code of a program that fails."""
    started = time.monotonic()
    python = folder / "bin" / "python"
    if not _has_pip(python):
        _create(folder)
    pins = len(_PIN.findall(requirements.read_text()))
    with Step(f"installing {requirements} into {folder}") as step:
        _install(step, folder, pins, "--require-hashes", "-r", str(requirements))
    with Step("installing podstatus (editable)") as step:
        _install(step, folder, 1, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    _print(f"{folder} is ready: {_megabytes(folder)} MB, {time.monotonic() - started:.0f} s")


def _create(folder: Path) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    # An environment without pip is broken, for example because its Python was removed.
    clear = ("--clear",) if (folder / "pyvenv.cfg").exists() else ()
    with (
        Step(f"creating {folder} with Python {version} and pip"),
        _start(sys.executable, "-m", "venv", *clear, str(folder)) as venv,
    ):
        venv.wait()
    _check(venv)


def progress(output: Iterable[str], pins: int) -> Iterator[str]:
    """Return a line for each package and step of pip's output; `pins` is how many are required."""
    count = 0
    for line in output:
        if line.startswith("Ignoring "):  # its marker excludes this platform
            pins -= 1
        elif (package := _PACKAGE.match(line)) is not None:
            count += 1
            yield f"{count:>3}/{pins} {' '.join(filter(None, package.groups()))}"
        elif line.startswith("Installing collected packages: "):
            packages = line.count(", ") + 1
            yield f"unpacking {packages} {'package' if packages == 1 else 'packages'}"


def _has_pip(python: Path) -> bool:
    if not python.exists():
        return False
    return not subprocess.run(
        [python, "-c", "import pip"], capture_output=True, check=False
    ).returncode


def _install(step: Step, folder: Path, pins: int, *arguments: str) -> None:
    with _start(str(folder / "bin" / "python"), *_PIP, *arguments, stdout=subprocess.PIPE) as pip:
        for text in progress(pip.stdout or (), pins):
            step.show(_unpacked(folder, text) if text.startswith("unpacking ") else text.__str__)
    _check(pip)


def _unpacked(folder: Path, text: str) -> Callable[[], str]:
    """Describe the unpacking: how many packages are there now; pip prints nothing meanwhile."""
    before = _count_packages(folder)

    def describe() -> str:
        done = _count_packages(folder) - before
        return f"{text}: {done} done" if done > 0 else text

    return describe


def _count_packages(folder: Path) -> int:
    return sum(1 for _ in folder.glob("lib/python*/site-packages/*.dist-info/RECORD"))


@contextmanager
def _start(*command: str, stdout: int | None = None) -> Iterator["subprocess.Popen[str]"]:
    """Start a program in its own process group, so that Ctrl-C does not make it print a traceback.

    The group is ended on Ctrl-C. Waits until the program has ended.
    """
    with subprocess.Popen(command, stdout=stdout, text=True, process_group=0) as program:
        try:
            yield program
        except KeyboardInterrupt:
            os.killpg(program.pid, signal.SIGTERM)
            raise


def _check(program: "subprocess.Popen[str]") -> None:
    if program.returncode:
        command = " ".join(map(str, program.args)) if isinstance(program.args, tuple) else ""
        print(f"failed, see above; to try again, repeat make: {command}", file=sys.stderr)
        sys.exit(program.returncode)


def _megabytes(folder: Path) -> int:
    """Return the disk space of a folder, as du -sm does."""
    blocks = sum(path.lstat().st_blocks for path in folder.rglob("*"))
    return -(-blocks * 512 // 2**20)


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except KeyboardInterrupt:
        erase = _ERASE_LINE if sys.stdout.isatty() else ""
        print(f"{erase}cancelled; run make again to continue", flush=True)
        sys.exit(130)
