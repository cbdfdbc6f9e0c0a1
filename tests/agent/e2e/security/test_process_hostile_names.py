"""Hostile names and UIDs do not lead out of their directories."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podstatus.agent.compose.runtime import cgroups_name
from tests.support.processes.agent_process import NODE, Document, has_phase, until
from tests.support.processes.process_leftovers import take_picture
from tests.support.processes.process_node import ISOLATIONS, ProcessNode, command_pod, process_node

pytestmark = pytest.mark.slow

UIDS = {
    "up": "../../x",
    "far-up": "../../../../../../tmp/x",
    "rooted": "/etc/x",
    "dot": ".",
    "dots": "..",
    "hidden": ".hidden",
    "inside": "a/b",
    "percent": "%2E%2E%2Fx",
    "blank": "a b\tc\n",
    "option": "-rf",
    "odd": "ü\u202e$(touch x)`'\"",
    "long": "u" * 250,
    "too-long": "u" * 5000,
    "upper": "POD",
}
LIMIT = 63
"""Of the name of a container or a volume."""


@pytest.fixture(scope="module", params=ISOLATIONS)
def node(request: pytest.FixtureRequest) -> Iterator[ProcessNode]:
    with hostile_node(request.param) as node:
        yield node


@contextmanager
def hostile_node(isolation: str) -> Iterator[ProcessNode]:
    """An agent with static pods, whose UIDs are as their manifests say."""
    with process_node("--pod-manifest-path", "manifests", isolation=isolation) as node:
        manifests = node.folder / "manifests"
        manifests.mkdir()
        node.words[node.words.index("manifests")] = str(manifests)
        for name, uid in UIDS.items():
            pod = command_pod(name, "sh", "-c", "echo alive; sleep 1000")
            pod["metadata"]["uid"] = uid
            (manifests / f"{name}.json").write_text(json.dumps(pod))
        node.start_ready()
        yield node


@pytest.mark.parametrize("name", UIDS)
def test_a_pod_with_a_hostile_uid_stays_in_its_folder_or_is_refused(
    node: ProcessNode, name: str
) -> None:
    if name == "too-long":
        node.cluster.wait_for_event("FailedSync", f"{name}-{NODE}")
    else:
        node.wait_for_log(f"{name}-{NODE}", "alive")


def test_no_hostile_uid_made_anything_elsewhere(node: ProcessNode) -> None:
    wait_for_all(node)
    known = {"agent.log", "manifests", "root"}
    assert {path.name for path in node.folder.iterdir()} == known
    runtime = {path.name for path in (node.root_dir / "runtime").iterdir()}
    assert runtime <= {"pods", "removed"}
    folders = list(node.pods_folder.iterdir())
    assert len(folders) == len({path.name for path in folders}) >= len(UIDS) - 1
    assert all(path.resolve().parent == node.pods_folder.resolve() for path in folders)
    assert not Path("/etc/x").exists()


def test_names_may_be_as_long_as_they_may_be(node: ProcessNode) -> None:
    longest = "n" * LIMIT
    own: Document = {"name": longest, "image": "i" * 200}
    spec: Document = {}
    if "bubblewrap" in node.words:
        own["volumeMounts"] = [{"name": longest, "mountPath": "/" + "m" * 200}]
        spec["volumes"] = [{"name": longest, "emptyDir": {}}]
    name = "p" * 253
    pod = command_pod(name, "hostname", container=own, restartPolicy="Never", **spec)
    node.cluster.create(pod)
    node.cluster.wait_for(name, has_phase("Succeeded"))
    assert node.log_of(name, longest)
    node.cluster.delete(name)
    node.cluster.wait_gone(name)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "A", "a" * (LIMIT + 1), "", "a\nb"])
@pytest.mark.parametrize("field", ["container", "volume", "pod"])
def test_names_that_lead_elsewhere_are_refused(node: ProcessNode, field: str, name: str) -> None:
    pod = command_pod("fine", "true", volumes=[{"name": "v", "emptyDir": {}}])
    if field == "container":
        pod["spec"]["containers"][0]["name"] = name
    elif field == "volume":
        pod["spec"]["volumes"][0]["name"] = name
    else:
        # Of pods, names may be longer.
        pod["metadata"]["name"] = name * 4 if len(name) > LIMIT else name
    access = node.cluster.access
    code, answer = access.request("POST", "/api/v1/namespaces/default/pods", pod)
    assert code == 422, answer


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_hostile_pods_go_as_others_do(isolation: str) -> None:
    with hostile_node(isolation) as node:
        wait_for_all(node)
        for path in (node.folder / "manifests").iterdir():
            path.unlink()
        for folder in (node.pods_folder, node.root_dir / "runtime/removed"):
            until(lambda folder=folder: not any(folder.iterdir()), node.log)  # type: ignore[misc]
        below = take_picture(cgroups=cgroups_name(NODE, node.root_dir)).cgroups
        assert {path for path in below if "/pod" in path.partition(NODE)[2]} == set()


def wait_for_all(node: ProcessNode) -> None:
    """Come back when all static pods that can run do."""
    for name in UIDS.keys() - {"too-long"}:
        node.wait_for_log(f"{name}-{NODE}", "alive")
