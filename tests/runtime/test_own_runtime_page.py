"""docs/tutorials/write-a-runtime.md shows the code of the example and the output of the suite."""

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "tutorials" / "write-a-runtime.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SOURCE = (EXAMPLES / "own_runtime.py").read_text()
BEFORE, *PARTS = re.split(r"^ *# --8<-- \d\n", SOURCE, flags=re.MULTILINE)
TALLIES = re.findall(r"^((?:\d+ failed, )?\d+ passed, \d+ skipped) in", PAGE, re.MULTILINE)
FAILED = re.findall(r"^FAILED .*$", PAGE, re.MULTILINE)
NAMES = r"^(?:async def|def|class) (\w+)"
"""Names defined outside of the class."""
UNTURNED = "await in_thread(self._batch.jobs)"
WAIT_FINISHED = "            await self._wait_finished(job)\n"
STOP_POD = "\n    async def stop_pod"
MISTAKES = {
    "the exit is lost": ("reversed(await in_thread(self._batch.jobs))", UNTURNED),
    "its sandbox is stopped": ("active=attempt.sandbox == pod.sandbox", "active=True"),
    "the grace period was cut short": (WAIT_FINISHED + STOP_POD, STOP_POD),
}
"""By message of the suite: the correct code, and a mistake to replace it with."""


def meaning(source: str) -> str:
    """The code without its layout: on the page, methods are dedented."""
    return ast.dump(ast.parse(textwrap.dedent(source)))


def test_the_page_shows_the_class_part_by_part() -> None:
    on_page = [meaning(block) for block in BLOCKS]
    places = [on_page.index(meaning(part)) for part in PARTS]
    assert len(places) == 5
    assert places == sorted(places)


def test_the_page_shows_what_stands_before_the_class() -> None:
    rest = BEFORE[BEFORE.index("\nimport ") :]
    on_page = "\n".join(BLOCKS)
    pieces = [piece.strip() for piece in re.split(r"\n\n\n", rest) if piece.strip()]
    assert len(pieces) == 7
    assert [piece for piece in pieces if piece not in on_page] == []


def test_the_page_shows_what_a_step_needs_before_its_tally() -> None:
    ours = set(re.findall(NAMES, BEFORE, re.MULTILINE))
    assert len(ours) == 6
    on_page = ""
    for section in re.split(r"^(?=## \d)", PAGE, flags=re.MULTILINE):
        on_page += "\n".join(
            re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        )
        used = {name for name in ours if re.search(rf"\b{name}\b", on_page)}
        assert used <= set(re.findall(NAMES, on_page, re.MULTILINE))


def test_the_page_shows_the_tests() -> None:
    assert (EXAMPLES / "test_own_runtime.py").read_text() in BLOCKS


def suite_says(folder: Path, source: str) -> str:
    """Return the output of the suite for a runtime with this source."""
    (folder / "own_runtime.py").write_text(source)
    for name in ("batch_system.py", "test_own_runtime.py"):
        (folder / name).write_bytes((EXAMPLES / name).read_bytes())
    options = ("-q", "--tb=no", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_own_runtime.py"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200", "PYTEST_ADDOPTS": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return result.stdout


@pytest.mark.long
@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_the_suite_says_of_each_step_what_the_page_has(step: int, tmp_path: Path) -> None:
    output = suite_says(tmp_path, "".join([BEFORE, *PARTS[:step]]))
    assert output.splitlines()[-1].partition(" in ")[0] == TALLIES[step - 1], output
    if step == 1:
        assert FAILED[0] in output.splitlines()


@pytest.mark.long
@pytest.mark.parametrize("message", MISTAKES)
def test_the_suite_says_of_a_mistake_what_the_page_has(message: str, tmp_path: Path) -> None:
    right, wrong = MISTAKES[message]
    assert SOURCE.count(right) == 1
    (line,) = [line for line in FAILED if line.endswith(message)]
    assert line in suite_says(tmp_path, SOURCE.replace(right, wrong)).splitlines()
