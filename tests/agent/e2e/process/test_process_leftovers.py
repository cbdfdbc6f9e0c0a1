"""Nothing is left of pods that came and went: no process, file, pipe, cgroup, zombie.

The full measure, 50 pods 20 times, is `make churn`.
"""

import ctypes
import itertools
import re
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from msgspec import structs

from podstatus.agent.compose.runtime import cgroups_name
from tests.support.processes.agent_process import NODE, Document, container, until
from tests.support.processes.process_leftovers import (
    Picture,
    become_subreaper,
    take_picture,
    wait_for_adopted,
    what_is_left,
)
from tests.support.processes.process_node import (
    ISOLATIONS,
    PYTHON,
    ProcessNode,
    command_pod,
    need_root,
    pod_of,
    process_node,
)

FEW = (8, 2)
"""Pods, and how often: some seconds."""
MANY = (50, 20)
_DAEMON = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)
"""
_LIMITS = {"cpu": "1", "memory": "64Mi"}
_BUSY = {"resources": {"limits": _LIMITS, "requests": {"cpu": "1m", "memory": "1Mi"}}}
_SPARE_SOCKETS = 4
_PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def orphans_are_ours() -> Iterator[None]:
    """Whatever loses its parent becomes a child of this process, so that it is found."""
    become_subreaper()
    yield
    wait_for_adopted()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def kinds(isolation: str) -> list[Document]:
    """Pods of all kinds, without their names."""
    volumes = {
        "bubblewrap": (
            [{"name": "v", "mountPath": "/data/deep"}, {"name": "c", "mountPath": "/etc/conf"}],
            [{"name": "v", "emptyDir": {}}, {"name": "c", "downwardAPI": {"items": []}}],
        ),
        "none": ([], []),
    }
    mounts, made = volumes[isolation]
    sleeping = {"command": ["sleep", "1000"]}
    return [
        command_pod("", "sleep", "1000"),
        command_pod("", "sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait", container=_BUSY),
        pod_of("", sleeping, {"command": ["sh", "-c", "yes"]}),
        command_pod("", PYTHON, "-I", "-S", "-c", _DAEMON),
        command_pod("", "sh", "-c", "echo oops; exit 3"),
        pod_of("", {**sleeping, "volumeMounts": mounts}, volumes=made),
        command_pod("", "cat", container={"stdin": True, "tty": True}),
        command_pod("", "/no/such/program"),
    ]


def start_pods(node: ProcessNode, isolation: str, count: int, round_: int) -> list[str]:
    """Create so many pods and wait until something came of each; their names."""
    names = [f"p{round_}-{number}" for number in range(count)]
    for name, pod in zip(names, itertools.cycle(kinds(isolation)), strict=False):
        node.cluster.create({**pod, "metadata": {"name": name}})
    waiting = set(names)

    def look() -> bool:
        waiting.difference_update(
            pod["metadata"]["name"] for pod in node.cluster.pods() if has_begun(pod)
        )
        return not waiting

    until(look, lambda: (waiting, node.log()[-4000:]))
    return names


def has_begun(pod: Document) -> bool:
    """Whether all its containers were tried."""
    found = pod["status"].get("containerStatuses") or [{}]
    return all(
        status.get("containerID")
        or status.get("state", {}).get("waiting", {}).get("reason") == "RunContainerError"
        for status in found
    )


def stop_pods(node: ProcessNode, names: list[str]) -> None:
    for name in names:
        path = f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=1"
        code, answer = node.cluster.access.request("DELETE", path)
        assert code == 200, answer
    until(lambda: not node.cluster.pods(), lambda: (node.cluster.pods(), node.log()[-4000:]))


def picture(node: ProcessNode) -> Picture:
    """All there is. Of sockets and the like only how many there are: each has a number."""
    assert node.process is not None
    wait_for_adopted([node.process.pid])
    taken = take_picture(
        agent=node.process.pid,
        folders=[node.root_dir / "runtime"],
        cgroups=cgroups_name(NODE, node.root_dir),
    )
    counted: Counter[str] = Counter()
    for name, number in taken.open_files.items():
        counted[re.sub(r":\[\d+\]$", "", name)] += number
    return structs.replace(taken, open_files=counted)


def with_spare_sockets(taken: Picture) -> Picture:
    """Clients keep connections for a while, now more and now less; but not one for each pod."""
    open_files = Counter(taken.open_files)
    open_files["socket"] += _SPARE_SOCKETS
    return structs.replace(taken, open_files=open_files)


def churn(isolation: str, pods: int, rounds: int) -> float:
    """Start and stop so many pods so often; pods in a second. Fails if anything is left."""
    with process_node(isolation=isolation) as node:
        node.start_ready()
        # Whatever is opened once and kept is open after this.
        stop_pods(node, start_pods(node, isolation, pods, 0))
        before = with_spare_sockets(picture(node))
        began = time.monotonic()
        for round_ in range(1, rounds + 1):
            stop_pods(node, start_pods(node, isolation, pods, round_))
        seconds = time.monotonic() - began
        until(
            lambda: not what_is_left(before, picture(node)),
            lambda: what_is_left(before, picture(node)),
        )
        assert not any(node.pods_folder.iterdir())
        assert not any((node.root_dir / "runtime/removed").iterdir())
        assert "Traceback" not in node.log()
    return pods * rounds / seconds


@pytest.mark.slow
@pytest.mark.usefixtures("orphans_are_ours")
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_nothing_is_left_of_pods_that_came_and_went(isolation: str) -> None:
    churn(isolation, *FEW)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("orphans_are_ours")
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_nothing_is_left_of_fifty_pods_twenty_times(isolation: str) -> None:
    speed = churn(isolation, *MANY)
    summary = f"{isolation}: {MANY[0]} pods {MANY[1]} times, {speed:.1f} pods/s"
    print(f"\n{summary}, nothing is left")  # noqa: T201 - the test takes minutes


@pytest.mark.slow
@pytest.mark.usefixtures("orphans_are_ours")
def test_no_cgroup_is_left_of_an_agent_that_ends() -> None:
    need_root()
    with process_node(isolation="none") as node:
        cluster = node.start_ready()
        name = cgroups_name(NODE, node.root_dir)
        cluster.create(command_pod("p", "sleep", "1000", container=_BUSY))
        cluster.wait_ready("p")
        assert take_picture(cgroups=name).cgroups
        stop_pods(node, ["p"])
        assert node.stop() == 0
        assert take_picture(cgroups=name).cgroups == frozenset()


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_agent_leaves_the_pods_of_another_one_alone(isolation: str) -> None:
    """Two agents may have the same node name, by default the hostname."""
    with process_node(isolation=isolation) as one, process_node(isolation=isolation) as other:
        cluster = one.start_ready()
        cluster.create(command_pod("p", "sleep", "1000", container=_BUSY))
        (before,) = cluster.wait_ready("p")
        theirs = other.start_ready()
        theirs.create(command_pod("p", "sleep", "1000", container=_BUSY))
        theirs.wait_ready("p")
        said, _ = one.exec("p", "echo", "alive")
        assert said == "alive\n"
        now = cluster.pod("p")
        assert now is not None
        assert container(now)["containerID"] == container(before)["containerID"]
        assert container(now)["restartCount"] == 0
