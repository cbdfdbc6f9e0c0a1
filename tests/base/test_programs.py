"""Programs are started without running code from the current directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podstatus.base.programs import (
    absolute_search_path,
    child_environment,
    find_program,
    python_module_command,
)


@pytest.fixture
def hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory in which another user has put a program and modules."""
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\nexit 66\n")
    script.chmod(0o755)
    for module in ("sitecustomize", "this", "antigravity"):
        (tmp_path / f"{module}.py").write_text("import os; os._exit(66)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("hostile_folder")
def test_a_module_is_run_without_the_current_folder_on_its_path() -> None:
    done = subprocess.run(
        [*python_module_command("this")],
        env=child_environment({**os.environ, "PYTHONPATH": ":/nowhere::"}),
        stdout=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.usefixtures("hostile_folder")
def test_without_these_measures_the_folder_would_be_used() -> None:
    unsafe = subprocess.run([sys.executable, "-m", "this"], check=False)
    environment = {**os.environ, "PYTHONPATH": ":/nowhere"}
    unclean = subprocess.run([*python_module_command("this")], env=environment, check=False)
    assert (unsafe.returncode, unclean.returncode) == (66, 66)


@pytest.mark.parametrize("path", [":{system}", "{system}:", ".:{system}", "{here}::.:bin"])
def test_programs_are_looked_up_in_absolute_folders(
    path: str, hostile_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = hostile_folder / "there"
    there.mkdir()
    (there / "tool").symlink_to("/bin/sh")
    path = path.format(system=there, here=there)
    monkeypatch.setenv("PATH", path)
    assert find_program("tool") == find_program("tool", path) == str(there / "tool")


@pytest.mark.parametrize("path", ["", ":", ".", "bin:./x"])
@pytest.mark.usefixtures("hostile_folder")
def test_a_path_without_absolute_folders_has_no_programs(path: str) -> None:
    assert absolute_search_path(path) == ""
    assert find_program("tool", path) is None


def test_a_program_with_a_folder_is_that_file(hostile_folder: Path) -> None:
    assert find_program("./tool") == str(hostile_folder / "tool")
    assert find_program(str(hostile_folder / "tool")) == str(hostile_folder / "tool")
    assert find_program("./none") is None


def test_children_get_search_paths_without_empty_entries() -> None:
    environment = {
        "PATH": ":/bin::/usr/bin:",
        "PYTHONPATH": ".::lib",
        "LD_LIBRARY_PATH": ":",
        "HOME": "/h",
        "X": ":",
    }
    assert child_environment(environment) == {
        "PATH": "/bin:/usr/bin",
        "PYTHONPATH": ".:lib",
        "HOME": "/h",
        "X": ":",
    }
