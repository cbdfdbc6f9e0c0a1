"""Each tutorial, and a guide like one, works as it stands: its commands show what it shows."""

import ast
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.doc_examples import Reader, blocks
from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
ELSEWHERE = {"use-the-library", "write-a-runtime"}
"""Checked by tests/project/test_readme.py and tests/runtime/test_own_runtime_page.py."""
PAGES = [
    *sorted(path for path in TUTORIALS.glob("*.md") if path.stem not in ELSEWHERE),
    ROOT / "docs" / "how-to" / "find-out-what-happened.md",
]
BIN = str(Path(sys.prefix, "bin"))
PATH = ":".join(path for path in os.environ["PATH"].split(":") if path != BIN)
ENVIRONMENT = {
    "PODSTATUS_HOSTNAME_OVERRIDE": "laptop",
    "PYTEST_ADDOPTS": "-p no:asyncio",  # the reader does not have this plugin, which warns
}
NEEDS_CHECKOUT = "a checkout of this repository"
CHECKOUT = ("Makefile", "pyproject.toml", "requirements", "examples", "tools")


@pytest.fixture
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """An empty directory, or one like a checkout after its first `make`."""
    if NEEDS_CHECKOUT in request.param.read_text():
        make_checkout(tmp_path)
    yield tmp_path
    # Containers and jobs outlive what started them, also after a test that failed. An agent may
    # start a process while the others are killed: repeat until there is none.
    while processes := list(processes_of(tmp_path)):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                for child in (*process.children(recursive=True), process):
                    child.kill()
        psutil.wait_procs(processes, timeout=1)


def processes_of(folder: Path) -> Iterator[psutil.Process]:
    """Yield the processes with the folder in their command line."""
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in word for word in process.info["cmdline"] or ()):
            yield process


def make_checkout(folder: Path) -> None:
    for name in CHECKOUT:
        (folder / name).symlink_to(ROOT / name)
    environment = folder / ".venv"
    environment.mkdir()
    for path in Path(sys.prefix).iterdir():
        if path.is_dir():
            (environment / path.name).symlink_to(path)
        else:  # with the time of now: up to date for make
            shutil.copyfile(path, environment / path.name)
    for stamp in ("ready", "run"):
        (environment / stamp).touch()


@pytest.mark.slow
@pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT)
@pytest.mark.parametrize(
    ("page", "directory"),
    [(page, page) for page in PAGES],
    indirect=["directory"],
    ids=[page.stem for page in PAGES],
)
def test_a_tutorial_shows_what_its_commands_show(page: Path, directory: Path) -> None:
    text = page.read_text()
    path = PATH if NEEDS_CHECKOUT in text else f"{BIN}:{PATH}"  # of an activated environment
    Reader(directory, {**ENVIRONMENT, "PATH": path}).follow(text)


def test_a_page_shows_the_examples_that_it_names() -> None:
    shown = [block for page in PAGES for block in blocks(page.read_text()) if "/" in block.file]
    assert shown
    assert [it.file for it in shown if (ROOT / it.file).read_text() != it.text] == []


def test_the_bridge_has_fewer_than_60_lines_of_code() -> None:
    source = (ROOT / "examples" / "bridge.py").read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, documented) and ast.get_docstring(node)
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    lines = enumerate(source.splitlines(), 1)
    assert len([number for number, line in lines if line and number not in docstrings]) < 60
