"""What README and the pages about the library show works, and says what there is."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from podstatus import ContainerFacts, PodFacts, StatusManager, generate_api_pod_status
from podstatus.status.counters import Counts
from tests.support.doc_examples import Reader

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorials" / "use-the-library.md"
MANAGER = DOCS / "reference" / "status-manager.md"
FACTS = (DOCS / "reference" / "runtime-facts.md").read_text()
CLIENT = (DOCS / "how-to" / "talk-to-an-api-server.md").read_text()
PAGES = [
    ROOT / "README.md",
    TUTORIAL,
    MANAGER,
    DOCS / "reference" / "runtime-facts.md",
    DOCS / "explanation" / "how-events-are-sent.md",
]
PROGRAM = re.compile(r"^```python\n.*?^```$(?:\s*^```text\n.*?^```$)?", re.MULTILINE | re.DOTALL)
"""A program, and its output if the page shows it."""
PROGRAMS = [
    pytest.param(program, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, program in enumerate(PROGRAM.findall(page.read_text()))
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_pages_prints_what_they_show(program: str, tmp_path: Path) -> None:
    Reader(tmp_path, {}).follow(program)


# own_node.py needs a server: tests/client/test_own_node.py runs it. The page shows what
# keep_a_status.py prints. docs/tutorials/bridge-to-a-batch-system.md runs the other two.
ELSEWHERE = {
    ROOT / "examples" / f"{name}.py"
    for name in ("own_node", "keep_a_status", "batch_system", "bridge")
}
EXAMPLES = sorted(set((ROOT / "examples").glob("*.py")) - ELSEWHERE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example: Path) -> None:
    subprocess.run([sys.executable, str(example)], check=True)


def test_the_tutorial_shows_what_the_example_prints() -> None:
    example = [sys.executable, str(ROOT / "examples" / "keep_a_status.py")]
    printed = subprocess.run(example, capture_output=True, text=True, check=True).stdout
    assert printed.strip() in TUTORIAL.read_text()


def test_the_reference_names_every_public_method() -> None:
    text = MANAGER.read_text()
    methods = [name for name in vars(StatusManager) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}(" not in text] == []


@pytest.mark.parametrize(("page", "lines"), [("README.md", 150), ("ARCHITECTURE.md", 120)])
def test_a_page_for_strangers_stays_short(page: str, lines: int) -> None:
    assert len((ROOT / page).read_text().splitlines()) <= lines


@pytest.mark.parametrize("kind", [ContainerFacts, PodFacts, Counts])
def test_the_page_about_facts_names_every_field(kind: type[msgspec.Struct]) -> None:
    assert [name for name in kind.__struct_fields__ if f"`{name}`" not in FACTS] == []


def test_the_page_about_facts_names_every_keyword() -> None:
    keywords = inspect.signature(generate_api_pod_status).parameters.values()
    named = [k.name for k in keywords if k.kind is k.KEYWORD_ONLY and k.name != "gates"]
    assert [name for name in named if f"`{name}`" not in FACTS] == []


def test_the_page_about_the_client_names_everything_public() -> None:
    pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")
    from podstatus.client import public_api as client  # noqa: PLC0415 - may not be there

    names = [*client.__all__, *_methods(client.ApiClient), *_methods(client.Reflector)]
    values = (client.Timeouts, client.ReflectorPolicy)
    fields = [field for value in values for field in value.__struct_fields__]
    internal = {"list_and_watch_once", "resync_once"}
    assert [n for n in [*names, *fields] if n not in CLIENT and n not in internal] == []


def test_python_in_the_page_about_the_client_runs(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")
    from podstatus.testing.apiserver import running_api_server  # noqa: PLC0415 - may not be there

    with running_api_server(tmp_path) as server:
        environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
        for block in re.findall(r"```python\n(.*?)```", CLIENT, re.DOTALL):
            subprocess.run([sys.executable, "-c", block], check=True, env=environment)


def _methods(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]
