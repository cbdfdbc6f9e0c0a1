"""The end of pods that were removed while no agent was running is in the history."""

import asyncio
from pathlib import Path

import pytest

from podstatus.agent.compose.history import AgentHistory
from podstatus.agent.compose.removed_pods import RemovedPods
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.history.sqlite_store import HistoryError
from podstatus.testing.apiserver import ApiServerThread
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from tests.agent.compose.history_scene import leave, next_history, noted, words
from tests.agent.compose.query_scene import PODS, a_pod, ask
from tests.agent.compose.status_view_scene import a_node, is_ready, until
from tests.support.pod_services import PodServices

POD = make_pod("web")
STATUS = PodStatus(phase="Running")
AWAY = ("away", "", "12.500 s", "", "")
END = (
    "finished",
    "",
    "",
    "RemovedDuringDowntime",
    "the pod was removed while no agent was running",
)


class Scene:
    """An agent that starts 12.5 s after another one, which had the pod, was killed."""

    def __init__(self, folder: Path, *pods: Pod) -> None:
        self.clock = FakeClock()
        leave(next_history(folder, self.clock))
        asyncio.run(self.clock.advance(12.5))
        self.history = next_history(folder, self.clock)
        self.services = PodServices(pods, clock=self.clock)
        self.runtime = self.services.shared.runtime
        self.is_ready = True
        self.removed = self.build(self.history)

    def build(self, history: AgentHistory) -> RemovedPods:
        shared = self.services.shared
        return RemovedPods(
            history,
            shared.pod_manager,
            shared.registry,
            shared.pleg,
            all_sources_ready=lambda: self.is_ready,
            clock=self.clock,
        )

    def check(self) -> list[tuple[str, ...]]:
        """What the history has after a relist and a check, besides the first entry."""

        async def scene() -> None:
            await self.services.shared.pleg.relist_once()
            self.removed.check_once()

        asyncio.run(scene())
        return [words(entry) for entry in noted(self.history)[1:]]


def test_it_ended_at_the_latest_when_the_next_agent_started(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    started = scene.clock.now()
    asyncio.run(scene.clock.advance(5))
    assert scene.check() == [AWAY, END]
    assert [entry.at for entry in noted(scene.history)[1:]] == [started, started]
    assert scene.check() == [AWAY, END], "it has one end"
    scene.history.close()
    later = next_history(tmp_path, scene.clock)
    assert later.unfinished_pods == ()


def test_an_unknown_pod_is_not_removed_before_all_sources_and_the_runtime_have_listed(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    scene.removed.check_once()
    assert len(noted(scene.history)) == 1
    scene.is_ready = False
    assert scene.check() == []
    scene.is_ready = True
    assert scene.check() == [AWAY, END]


def test_a_pod_of_a_source_is_not_removed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, POD)
    assert scene.check() == []
    scene.removed.on_pod_updated(POD, STATUS, is_added=True)
    scene.services.shared.pod_manager.remove_pod(POD)
    assert scene.check() == [], "the history writer records its end"


def test_a_pod_that_ends_before_its_first_status_has_one_end(tmp_path: Path) -> None:
    scene = Scene(tmp_path, POD)
    scene.removed.on_pod_removed(POD)
    scene.services.shared.pod_manager.remove_pod(POD)
    assert scene.check() == []


def test_the_end_precedes_the_entries_of_a_new_pod_of_the_name(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    asyncio.run(scene.services.shared.pleg.relist_once())
    new = make_pod("web", uid="new", status=STATUS)
    for notifier in (scene.history.downtime, scene.removed, scene.history.writer):
        assert notifier is not None
        notifier.on_pod_updated(new, new.status, is_added=True)
    kinds = [(entry.transition.kind, entry.uid) for entry in noted(scene.history)[1:]]
    assert kinds == [
        ("away", POD.uid),
        ("finished", POD.uid),
        ("seen", "new"),
        ("phase", "new"),
    ]


def test_containers_that_are_left_end_first(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    asyncio.run(scene.runtime.start_pod(POD))
    assert scene.check() == [AWAY]
    asyncio.run(scene.clock.advance(30))
    asyncio.run(scene.runtime.remove_pod(POD.uid))
    away, end = scene.check()
    assert (away, end[-1]) == (AWAY, f"{END[-1]}; its containers were terminated afterwards")
    assert noted(scene.history)[-1].at == scene.clock.now()


def test_an_agent_runs_without_a_readable_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise HistoryError("cannot read it: the disk is broken")

    monkeypatch.setattr("podstatus.observe.history.sqlite_store.History.unfinished_pods", broken)
    scene = Scene(tmp_path)
    assert scene.check() == []
    asyncio.run(scene.removed.run())


@pytest.mark.slow
async def test_an_agent_ends_the_history_of_a_pod_that_was_deleted_without_it(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server) as known:
        await ask(server, "POST", PODS, a_pod("web"))
        await until(lambda: is_ready(known, "web"))
    await ask(server, "DELETE", f"{PODS}/web?gracePeriodSeconds=0")
    await ask(server, "POST", PODS, a_pod("web"))
    async with a_node(tmp_path, server) as known:
        await until(lambda: "finished" in known.history.counts.by_kind)
        entries = await known.history.timeline("default", "web")
    first, _ = dict.fromkeys(entry.uid for entry in entries)
    (end,) = (entry for entry in entries if entry.transition.kind == "finished")
    assert (end.uid, end.transition.reason) == (first, "RemovedDuringDowntime")
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
