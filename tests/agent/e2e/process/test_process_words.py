"""Arguments and environments arrive as in the spec; secrets are readable by their pod only."""

import base64
import hashlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.agent_process import Document, words_of
from tests.support.processes.process_node import (
    ISOLATIONS,
    PYTHON,
    ProcessNode,
    command_pod,
    process_node,
    python_pod,
)

LONGEST = 128 * 1024 - 1
"""Of one argument, with its end: the kernel's."""
ODD = {
    "nothing": "",
    "blanks": " \t ",
    "quotes": "'\"'''\"\"\"",
    "lines": "one\ntwo\r\nthree\n",
    "a command": "$(touch /tmp/broken-out)",
    "ticks": "`touch /tmp/broken-out`",
    "shell": "; touch /tmp/broken-out & | > < * ? ~ ! # {a,b} [x] \\",
    "a variable": "$HOME ${HOME} $$ %d %s",
    "unicode": "ü € 𝄞 \u202e\u200b\ufeff\u0301 ﷽",
    "control": "\x01\x07\x1b[31m\x7f",
    "an option": "--bind",
    "the end of options": "--",
    "long": "x" * LONGEST,
}
_TELL = """
import hashlib, json, os, sys
short = lambda text: text if len(text) < 1000 else hashlib.sha256(text.encode()).hexdigest()
print(json.dumps({
    "arguments": [short(os.fsencode(word).decode()) for word in sys.argv[1:]],
    "env": {k: short(os.fsencode(v).decode()) for k, v in os.environ.items() if k[:4] == "ODD_"},
}))
"""


@pytest.fixture(scope="module", params=ISOLATIONS)
def node(request: pytest.FixtureRequest) -> Iterator[ProcessNode]:
    with process_node("-v", "4", isolation=request.param) as node:
        node.start_ready()
        yield node


def _short(text: str) -> str:
    """As the container tells it."""
    return text if len(text) < 1000 else hashlib.sha256(text.encode()).hexdigest()


def test_words_arrive_unchanged(node: ProcessNode) -> None:
    env = {f"ODD_{number}": value for number, value in enumerate(ODD.values())}
    # The name, the sign and the end count as well.
    env = {name: value[: LONGEST - len(name) - 1] for name, value in env.items()}
    own = {"env": [{"name": name, "value": _escaped(value)} for name, value in env.items()]}
    words = [_escaped(word) for word in ODD.values()]
    node.cluster.create(python_pod("words", _TELL, *words, container=own))
    result = node.result("words")
    assert result["arguments"] == [_short(word) for word in ODD.values()]
    assert result["env"] == {name: _short(value) for name, value in env.items()}
    assert not Path("/tmp/broken-out").exists()  # noqa: S108 - what a shell would have made


def _escaped(text: str) -> str:
    """As a spec has to say it, for Kubernetes itself expands $(NAME) and $$."""
    return text.replace("$", "$$")


def test_an_argument_that_is_too_long_is_reported_and_harms_no_other_pod(node: ProcessNode) -> None:
    node.cluster.create(command_pod("too-long", "echo", "x" * (LONGEST + 1)))
    node.cluster.wait_for_event("Failed", "too-long", "the Linux limit for one string")
    node.cluster.delete("too-long")
    node.cluster.wait_gone("too-long")


def secret_pod(node: ProcessNode, name: str, data: bytes, *, volume: bool) -> Document:
    """A pod that has a secret in its environment, and in a volume if it can."""
    secret = {"metadata": {"name": name}, "data": {"key": base64.b64encode(data).decode()}}
    path = "/api/v1/namespaces/default/secrets"
    code, answer = node.cluster.access.request("POST", path, secret)
    assert code == 201, answer
    source = {"secretKeyRef": {"name": name, "key": "key"}}
    own: Document = {"env": [{"name": "PSST", "valueFrom": source}]}
    more: Document = {}
    if volume:
        own["volumeMounts"] = [{"name": "s", "mountPath": "/psst"}]
        more["volumes"] = [{"name": "s", "secret": {"secretName": name}}]
    return command_pod(name, "sh", "-c", "echo got ${#PSST}; sleep 1000", container=own, **more)


def places_where_it_shows(node: ProcessNode, text: str) -> list[str]:
    """Places where another user could read it."""
    family = {f"process {it.pid}": " ".join(words_of(it)) for it in node.family()}
    logs = [*node.root_dir.glob("logs/*"), *node.root_dir.glob("*.log"), node.folder / "agent.log"]
    logs += node.pods_folder.glob("*/shim.log")
    places = {
        "events": json.dumps(node.cluster.events()),
        "pods": json.dumps(node.cluster.pods()),
        **{str(path): path.read_text(errors="replace") for path in logs},
        **family,
    }
    return [place for place, said in places.items() if text in said]


def test_a_secret_shows_nowhere(node: ProcessNode) -> None:
    psst = uuid.uuid4().hex
    isolated = "bubblewrap" in node.words
    pod = secret_pod(node, "psst", psst.encode(), volume=isolated)
    node.cluster.create(pod)
    node.wait_for_log("psst", f"got {len(psst)}")
    assert len(node.family()) > 4
    assert places_where_it_shows(node, psst) == []


@pytest.mark.parametrize(("kind", "more"), [("zero", b"\0"), ("bytes", b"\xff\xfe")])
def test_a_secret_that_cannot_be_passed_on_shows_nowhere(
    node: ProcessNode, kind: str, more: bytes
) -> None:
    psst, name = uuid.uuid4().hex, f"psst-{kind}"
    node.cluster.create(secret_pod(node, name, psst.encode() + more, volume=False))
    node.cluster.wait_for_event("Failed", name)
    assert places_where_it_shows(node, psst) == []


def test_only_the_owner_reads_what_is_kept(node: ProcessNode) -> None:
    node.cluster.create(command_pod("kept", "sh", "-c", "echo x; sleep 1000"))
    node.wait_for_log("kept", "x")
    for path in (node.root_dir, node.pods_folder, node.pod_folder("kept")):
        assert path.stat().st_mode & 0o077 == 0, path
    for name in ("launch.json", "started.json", "0.log"):
        (path,) = node.pod_folder("kept").glob(f"containers/*/{name}")
        assert path.stat().st_mode & 0o077 == 0, path


def test_commands_are_executed_and_not_interpreted(node: ProcessNode) -> None:
    """A command of one word that has blanks is a program of that name, not a line of a shell."""
    node.cluster.create(command_pod("line", f"{PYTHON} -c pass"))
    node.cluster.wait_for_event("Failed", "line", "no such file or directory")
