"""Exec sessions for an agent that is not root; for test runs as root."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NOBODY = 65534
ROOT = Path(__file__).parents[3]
SOME = "exit_code or given or cannot or terminal or hanging_up or ends_with or look_into"


def _run(python: str, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    paths = (ROOT / "src", ROOT, *filter(None, sys.path))
    return subprocess.run(
        [python, *arguments],
        user=NOBODY,
        group=NOBODY,
        extra_groups=(),
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": ":".join(str(path) for path in paths),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def _python(folder: Path) -> str | None:
    """Return an interpreter that the other user may run, too."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/bin")):
        if python is None:
            continue
        try:
            if _run(python, folder, "-c", "import msgspec, pytest, podstatus").returncode == 0:
                return python
        except PermissionError:
            continue
    return None


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests are those of an ordinary user")
def test_an_ordinary_user_may_exec_in_its_containers(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("nobody")
    os.chown(folder, NOBODY, NOBODY)
    python = _python(folder)
    if python is None:
        pytest.skip("no Python that an ordinary user may run, with what the tests need")
    arguments = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", SOME)
    ran = _run(python, folder, *arguments, "tests/runtime/process/exec/test_exec.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
