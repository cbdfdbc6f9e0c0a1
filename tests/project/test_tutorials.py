"""Each tutorial works as it stands: its commands show what the page shows."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.doc_examples import Reader
from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
ELSEWHERE = {"write-a-runtime"}
"""Run by tests/runtime/test_own_runtime_page.py."""
PAGES = sorted(path for path in TUTORIALS.glob("*.md") if path.stem not in ELSEWHERE)
CHECKOUT = ("Makefile", "pyproject.toml", "requirements", "examples")


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A directory like a checkout after its first `make`."""
    for name in CHECKOUT:
        (tmp_path / name).symlink_to(ROOT / name)
    environment = tmp_path / ".venv"
    environment.mkdir()
    for path in Path(sys.prefix).iterdir():
        if path.is_dir():
            (environment / path.name).symlink_to(path)
        else:
            shutil.copyfile(path, environment / path.name)
    (environment / "ready").touch()
    yield tmp_path
    # Containers and jobs outlive what started them, also after a test that failed.
    for process in psutil.process_iter(["cmdline"]):
        if any(str(tmp_path) in word for word in process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                for child in (*process.children(recursive=True), process):
                    child.kill()


@pytest.mark.slow
@pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_its_commands_show(page: Path, checkout: Path) -> None:
    Reader(checkout, {"PODSTATUS_HOSTNAME_OVERRIDE": "laptop"}).follow(page.read_text())
