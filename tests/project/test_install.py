"""What `make run` and `make test` install: the locked requirements, and the progress shown."""

import hashlib
import importlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"
REQUIREMENTS = ROOT / "requirements"
DEVELOPMENT = {"grpcio", "hypothesis", "import-linter", "mypy", "pytest", "ruff"}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("install")


def pins(name: str) -> dict[str, str]:
    text = (REQUIREMENTS / name).read_text()
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_both_sets_have_the_same_versions() -> None:
    run, dev = pins("run.txt"), pins("dev.txt")
    assert run.items() <= dev.items()


def test_running_needs_no_tools_of_development() -> None:
    assert pins("dev.txt").keys() >= DEVELOPMENT
    assert DEVELOPMENT.isdisjoint(pins("run.txt"))


@pytest.mark.parametrize("name", ["run.txt", "dev.txt"])
def test_every_requirement_has_hashes_and_no_address(name: str) -> None:
    text = (REQUIREMENTS / name).read_text()
    assert "://" not in text
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(pins(name))
    assert all("--hash=sha256:" in entry for entry in entries)


def test_progress_is_a_line_for_each_package(tool: ModuleType) -> None:
    output = [
        "Ignoring colorama: markers 'sys_platform == \"win32\"' don't match your environment\n",
        "Collecting aiohttp==3.14.5 (from -r requirements/run.txt (line 7))\n",
        "  Downloading aiohttp-3.14.5-cp311-cp311-manylinux2014_x86_64.whl (1.9 MB)\n",
        "Requirement already satisfied: cffi==2.1.1 in ./.venv/lib/site-packages (2.1.1)\n",
        "Installing collected packages: aiohttp\n",
        "Successfully installed aiohttp-3.14.5\n",
    ]
    assert list(tool.progress(output, 3)) == [
        "  1/2 aiohttp 3.14.5",
        "  2/2 cffi 2.1.1",
        "unpacking 1 package",
    ]


def test_a_step_that_prints_nothing_shows_that_it_runs(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "PIPE_SECONDS", 0.001)
    calls, shown_twice = itertools.count(1), threading.Event()

    def describe() -> str:
        if (call := next(calls)) == 3:
            shown_twice.set()
        return f"{call} done"

    with tool.Step("unpacking") as step:
        step.show(describe)
        assert shown_twice.wait(60)
    shown = capsys.readouterr().out
    assert re.match(r"unpacking\n(  \d+ s\n)*  1 done\n  2 done, \d+ s\n", shown), shown


def make_wheel(folder: Path) -> str:
    """Write a wheel of the package `tiny`; return a requirement with its hash."""
    wheel = folder / "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return f"tiny==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def install(tmp_path: Path, requirement: str) -> subprocess.CompletedProcess[str]:
    """Install from `tmp_path` only; there is no index."""
    (tmp_path / "some.txt").write_text(requirement)
    command = [sys.executable, str(TOOLS / "install.py"), "env", "some.txt"]
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )


def test_ctrl_c_ends_the_programs_with_one_line(tmp_path: Path) -> None:
    python = tmp_path / "env/bin/python"
    python.parent.mkdir(parents=True)
    # It has pip, and each installation takes until it is ended.
    python.write_text(
        "#!/bin/sh\ncase $1 in -c) exit 0;; esac\necho Collecting a==1\nexec sleep 300\n"
    )
    python.chmod(0o755)
    (tmp_path / "some.txt").write_text("a==1\n")
    command = [sys.executable, str(TOOLS / "install.py"), "env", "some.txt"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, process_group=0
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "    1/1 a 1\n":
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "cancelled; run make again to continue\n", "")


@pytest.mark.slow
def test_a_wrong_hash_installs_nothing_and_shows_the_error(tmp_path: Path) -> None:
    right = make_wheel(tmp_path)
    installed = install(tmp_path, right[:-2] + ("0" if right[-2] != "0" else "1") + "\n")
    assert installed.returncode != 0
    assert "DO NOT MATCH THE HASHES" in installed.stderr
    assert "failed, see above; to try again, repeat make" in installed.stderr
    assert not list(tmp_path.glob("env/lib/*/site-packages/tiny.py"))


@pytest.mark.slow
def test_an_environment_is_created_once_and_repaired(tmp_path: Path) -> None:
    requirement = make_wheel(tmp_path)
    # Without hatchling, the step after the requirements fails; they are installed by then.
    first = install(tmp_path, requirement)
    assert "creating env with Python" in first.stdout
    assert "    1/1 tiny 1.0\n  unpacking 1 package\n" in first.stdout
    again = install(tmp_path, requirement)
    assert "creating" not in again.stdout
    assert "    1/1 tiny 1.0\n" in again.stdout
    (tmp_path / "env" / "bin" / "python").unlink()
    assert "creating env with Python" in install(tmp_path, requirement).stdout
