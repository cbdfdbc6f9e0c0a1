"""The example of a runtime keeps its promises, and the page about runtimes shows it."""

import asyncio
import builtins
import dis
import importlib.util
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.containers import Container
from podstatus.kube.pod import Pod
from podstatus.kube.pod_spec import PodSpec
from podstatus.runtime.port import Runtime
from podstatus.testing.builders import make_pod
from podstatus.testing.runtime_suite import Behaviour, RuntimeSuite

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "runtimes.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLE = ROOT / "examples" / "own_runtime.py"
SCRIPTS = {
    Behaviour.OBEYS: "trap 'exit 0' TERM; touch {up}; while :; do sleep 0.01; done",
    Behaviour.EXITS: "touch {up}; sleep 1; exit 3",
    Behaviour.IGNORES: "trap '' TERM; touch {up}; exec sleep 600",
}


def load_example() -> Any:
    found = importlib.util.spec_from_file_location("own_runtime", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class TestOwnRuntime(RuntimeSuite):
    keeps_records = False
    tells_changes = False

    @pytest.fixture(autouse=True)
    def _prepare(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        runtime: Runtime = load_example().OwnRuntime()
        yield runtime
        for pod in await runtime.list_pods():
            await runtime.remove_pod(pod.uid)

    def make_pod(self, name: str, behaviour: Behaviour) -> Pod:
        command: tuple[str, ...] = ("/no/such/command",)
        if behaviour in SCRIPTS:
            script = SCRIPTS[behaviour].format(up=shlex.quote(str(self.folder / f"uid-{name}")))
            command = ("sh", "-c", script)
        spec = PodSpec(containers=(Container(name="app", command=command),))
        return structs.replace(make_pod(name), spec=spec)

    async def wait_until_up(self, pod: Pod) -> None:
        async with asyncio.timeout(60):
            while not (self.folder / pod.uid).exists():
                await self.wait(0.01)


def test_the_page_shows_the_example() -> None:
    _, shown, _ = EXAMPLE.read_text().split("# --8<--")
    shown = shown.partition("\n")[2].strip()
    assert shown in PAGE


def test_what_the_page_shows_imports_all_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = [block for block in BLOCKS if "class OwnRuntime" in block]
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    names: dict[str, Any] = {}
    exec(shown, names)  # noqa: S102 - ours
    code = [f.__code__ for f in vars(names["OwnRuntime"]).values() if hasattr(f, "__code__")]
    assert len(code) > 8
    used = {i.argval for c in code for i in dis.get_instructions(c) if i.opname == "LOAD_GLOBAL"}
    assert [name for name in used if name not in names and not hasattr(builtins, name)] == []
