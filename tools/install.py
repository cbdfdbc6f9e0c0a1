"""Installs locked requirements and podstatus itself into a virtual environment, with progress.

    python3 tools/install.py .venv requirements/run.txt

`make` runs it, once per requirements file. An environment that has pip is extended; packages that
are installed already stay. On a terminal, progress is one line that changes; in a pipe, a line per
package. Needs the standard library only.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--progress-bar=off")
_PACKAGE = re.compile(
    r"(?:Collecting|Requirement already satisfied:) (\S+?)==([^\s;]+)"
    r"|Processing \S*/([\w.]+)-([\w.+!]+)-\S+\.whl"  # a local file
)
_PIN = re.compile(r"^[\w.-]+==", re.MULTILINE)
_ERASE_LINE = "\r\x1b[K"


def main(folder: Path, requirements: Path) -> None:
    """Install into the environment in `folder`. Exits with the code of a program that fails."""
    started = time.monotonic()
    python = folder / "bin" / "python"
    if not _has_pip(python):
        _print(f"creating {folder} with Python {'.'.join(map(str, sys.version_info[:3]))}")
        # An environment without pip is broken, for example because its Python was removed.
        clear = ("--clear",) if (folder / "pyvenv.cfg").exists() else ()
        with _start(sys.executable, "-m", "venv", *clear, str(folder)) as venv:
            venv.wait()
        _check(venv)
    _print(f"installing {requirements} into {folder}")
    pins = len(_PIN.findall(requirements.read_text()))
    _install(python, pins, "--require-hashes", "-r", str(requirements))
    _print("installing podstatus (editable)")
    _install(python, 1, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    _print(f"{folder} is ready: {_megabytes(folder)} MB, {time.monotonic() - started:.0f} s")


def progress(output: Iterable[str], pins: int) -> Iterator[str]:
    """Return a line for each package and step of pip's output; `pins` is how many are required."""
    count = 0
    for line in output:
        if line.startswith("Ignoring "):  # its marker excludes this platform
            pins -= 1
        elif (package := _PACKAGE.match(line)) is not None:
            count += 1
            yield f"  {count:>3}/{pins} {' '.join(filter(None, package.groups()))}"
        elif line.startswith("Installing collected packages: "):
            packages = line.count(", ") + 1
            yield f"  unpacking {packages} {'package' if packages == 1 else 'packages'}"


def _has_pip(python: Path) -> bool:
    if not python.exists():
        return False
    return not subprocess.run(
        [python, "-c", "import pip"], capture_output=True, check=False
    ).returncode


def _install(python: Path, pins: int, *arguments: str) -> None:
    with _start(str(python), *_PIP, *arguments, stdout=subprocess.PIPE) as pip:
        _show(progress(pip.stdout or (), pins))
    _check(pip)


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


def _show(lines: Iterable[str]) -> None:
    if not sys.stdout.isatty():
        for line in lines:
            _print(line)
        return
    width = shutil.get_terminal_size().columns - 1
    for line in lines:
        print(_ERASE_LINE + line[:width], end="", flush=True)
    print(_ERASE_LINE, end="", flush=True)


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
