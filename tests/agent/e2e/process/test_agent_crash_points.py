"""The agent is killed before each single step around the end of a pod: nothing of it is lost.

A life is lived again and again, by an agent that is killed one step later each time; the next
one finds what it left, and the API server shows the right end, once.
"""

import itertools
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agent.e2e.process import die_after
from tests.support.processes.agent_process import (
    Cluster,
    Document,
    container,
    has_phase,
    is_ready,
    until,
)
from tests.support.processes.api_servers import NODES, Server, Watch
from tests.support.processes.mortal_node import MortalNode, mortal_node, pod_of
from tests.support.processes.programs import COMMAND

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

NODE = NODES[23]
ENDS_WITH_7 = "trap 'echo last words; exit 7' USR1 TERM; echo begin; sleep 1000 & wait"
"""Without isolation what it leaves to say is the end of its log."""


class Scene:
    """One server, one node, and an agent that is killed again and again."""

    def __init__(self, node: MortalNode, cluster: Cluster, watch: Watch) -> None:
        self.node, self.cluster, self._watch = node, cluster, watch
        self._words = node.words[len(COMMAND) :]

    def start(self, steps: int) -> None:
        """Start an agent that dies before the n-th of the counted steps."""
        self.node.words = [sys.executable, die_after.__file__, str(steps), *self._words]
        self.node.start()
        self.node.wait_serving()

    def run_pod(self, name: str, policy: str) -> Document:
        """A pod that runs."""
        pod = pod_of(name, "sh", "-c", ENDS_WITH_7, node=NODE, restartPolicy=policy)
        pod["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError"
        self.cluster.create(pod)
        running = self.cluster.wait_for(name, is_ready)
        self.node.attempt(running).wait_for_text("begin")
        return running

    def dies(self, do: Callable[[], None], is_done: Callable[[], object]) -> bool:
        """Whether the agent dies of what is done to it, or comes to the end of it all."""
        process = self.node.process
        assert process is not None

        def has_died() -> bool:
            return process.poll() is not None

        def says(*, counts: bool) -> bool:
            return die_after.acknowledgement(process.pid, counts=counts) in self.node.log()

        process.send_signal(signal.SIGUSR2)
        until(lambda: says(counts=True), self.node.log)
        do()
        until(lambda: has_died() or is_done(), self.node.log)
        # What the server shows may be done before the agent has heard of it: it may still die.
        process.send_signal(signal.SIGUSR2)
        until(lambda: has_died() or says(counts=False), self.node.log)
        return has_died()

    def last_seen(self, name: str) -> Document:
        """The object as it was when it went."""
        while True:
            event = self._watch.next()
            if event["type"] == "DELETED" and event["object"]["metadata"]["name"] == name:
                return dict(event["object"])

    def check_gone(self, name: str) -> None:
        """It is not there, and nothing of it is left."""
        self.cluster.wait_gone(name)
        until(lambda: not self.left(), self.left)

    def left(self) -> list[Path]:
        """What there is of pods on the disk."""
        places = ("outbox/*", "runtime/pods/*", "runtime/removed/*")
        return [path for place in places for path in self.node.root_dir.glob(place)]


@pytest.fixture
def scene(each_server: Server, tmp_path: Path) -> Iterator[Scene]:
    namespace = each_server.new_namespace()
    cluster = Cluster(each_server.access, NODE, namespace)
    with (
        mortal_node(tmp_path, "none", server=each_server, node=NODE) as node,
        each_server.watch(f"/api/v1/namespaces/{namespace}/pods?watch=1") as watch,
    ):
        yield Scene(node, cluster, watch)


def check_end(ended: Document) -> None:
    assert (ended["exitCode"], ended["reason"]) == (7, "Error")
    assert ended["message"].split() == ["begin", "last", "words"]
    assert ended["startedAt"] <= ended["finishedAt"]


Life = Callable[[Scene, str, int], bool]
"""What happens to a pod; whether the agent was killed before this step of it."""


def live_until_nobody_dies(scene: Scene, life: Life) -> None:
    scene.start(0)
    for steps in itertools.count():
        if not life(scene, f"p-{steps}", steps):
            break
    assert steps > 5


def end_by_itself(scene: Scene, name: str, steps: int) -> bool:
    before = scene.run_pod(name, "Never")
    attempt = scene.node.attempt(before)

    def has_ended() -> bool:
        is_told = has_phase("Failed")(scene.cluster.pod(name) or {"status": {}})
        return is_told and not any(scene.node.root_dir.glob("outbox/*"))

    was_killed = scene.dies(lambda: attempt.send(signal.SIGUSR1), has_ended)
    if was_killed:
        scene.start(steps + 1)
    after = container(scene.cluster.wait_for(name, has_phase("Failed")))
    check_end(after["state"]["terminated"])
    assert after["containerID"] == container(before)["containerID"]
    assert after["restartCount"] == 0
    scene.cluster.delete(name)
    scene.check_gone(name)
    return was_killed


def end_by_deletion(scene: Scene, name: str, steps: int) -> bool:
    scene.run_pod(name, "Always")

    def is_gone() -> bool:
        return scene.cluster.pod(name) is None and not scene.left()

    was_killed = scene.dies(lambda: scene.cluster.delete(name), is_gone)
    if was_killed:
        scene.start(steps + 1)
    scene.check_gone(name)
    last = scene.last_seen(name)
    assert last["status"]["phase"] == "Failed"
    check_end(container(last)["state"]["terminated"])
    assert container(last)["restartCount"] == 0
    return was_killed


def end_and_begin_again(scene: Scene, name: str, steps: int) -> bool:
    before = scene.run_pod(name, "Always")
    attempt, known = scene.node.attempt(before), container(before)["containerID"]

    def runs_again(pod: Document) -> bool:
        return is_ready(pod) and container(pod)["containerID"] != known

    def has_restarted() -> bool:
        pod = scene.cluster.pod(name)
        return pod is not None and runs_again(pod)

    was_killed = scene.dies(lambda: attempt.send(signal.SIGUSR1), has_restarted)
    if was_killed:
        scene.start(steps + 1)
    after = container(scene.cluster.wait_for(name, runs_again))
    check_end(after["lastState"]["terminated"])
    assert after["lastState"]["terminated"]["containerID"] == known
    assert after["restartCount"] == 1
    launches = scene.node.pod_folder(before).containers.glob("*/launch.json")
    assert len(list(launches)) == 2
    scene.cluster.delete(name)
    scene.check_gone(name)
    return was_killed


def test_an_own_exit_is_reported_once(scene: Scene) -> None:
    live_until_nobody_dies(scene, end_by_itself)


def test_a_pod_that_is_deleted_shows_its_end_before_it_goes(scene: Scene) -> None:
    live_until_nobody_dies(scene, end_by_deletion)


def test_a_restart_is_counted_once_and_shows_the_end_before_it(scene: Scene) -> None:
    live_until_nobody_dies(scene, end_and_begin_again)
