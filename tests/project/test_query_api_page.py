"""What docs/reference/http/v1.md shows works: every example is asked, every word of it is there."""

import asyncio
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.health import HealthState
from podstatus.observe.transitions import compare_statuses as status_transitions
from podstatus.web.v1.endpoints import ENDPOINTS
from tests.support.web.fake_status_view import a_pod, make_entry
from tests.support.web.node_server import Scene, serve

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "http" / "v1.md").read_text()
EXAMPLES = re.findall(r"^\$ ask (.+)$", PAGE, re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_every_example_is_answered(tmp_path: Path) -> None:
    async with serve(tmp_path) as scene:
        scene.view.snapshot_cache.put(a_pod("web", "default"))
        scene.view.entries = [make_entry(id, "web", namespace="default") for id in (1, 2)]
        scene.view.known_nodes["laptop"] = NodeSummary(name="laptop")
        scene.view.known_nodes.pop("node-1")
        answers = [await asyncio.to_thread(_curl, scene, example) for example in EXAMPLES]
    assert len(answers) > 10
    assert [code for code, _ in answers] == [0] * len(answers), answers


def _curl(scene: Scene, example: str) -> tuple[int, str]:
    given = shlex.split(example.replace("$agent", scene.url))
    told = ["curl", "-sS", "--fail", "--cacert", str(scene.certificate), *given]
    done = subprocess.run(told, capture_output=True, text=True, check=False, timeout=90)
    return done.returncode, done.stderr


def test_the_page_has_every_question_parameter_and_word() -> None:
    parameters = {parameter.name for it in ENDPOINTS for parameter in it.parameters}
    missing = [name for name in parameters if f"`{name}`" not in PAGE]
    missing += [word for word in HealthState if f"`{word}`" not in PAGE]
    kinds = [
        name for name in dir(status_transitions) if name.isupper() and not name.startswith("_")
    ]
    missing += [kind for kind in kinds if f"`{getattr(status_transitions, kind)}`" not in PAGE]
    asked = [re.sub(r"\{namespace\}/\{name\}", "default/web", it.pattern) for it in ENDPOINTS]
    missing += [path for path in asked if path not in PAGE and path != "/openapi/v3"]
    assert missing == []
