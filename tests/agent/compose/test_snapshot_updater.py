"""The snapshot cache follows the pod manager and the status manager."""

import asyncio
import threading

from podstatus import Pod, PodManager, StatusManager
from podstatus.agent.compose.held_back_phases import HeldBackPhases
from podstatus.agent.compose.snapshot_updater import SnapshotUpdater
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.testing.builders import make_pod, make_static_pod, make_status, running
from podstatus.testing.fakes import FakeDeletionSafety


class Scene:
    def __init__(self, *pods: Pod) -> None:
        self.directory = PodManager(pods)
        safety = FakeDeletionSafety()
        self.statuses = StatusManager(None, self.directory, safety)
        self.board = SnapshotCache()
        held_back = HeldBackPhases(self.directory, safety)
        self.poster = SnapshotUpdater(self.board, self.directory, self.statuses, held_back)
        self.statuses.add_notifier(self.poster)

    def phases(self) -> dict[str, str]:
        return {pod.name: pod.phase for pod in self.board.pods().values()}


def test_a_pod_without_a_status_of_ours_is_shown_as_the_server_has_it() -> None:
    scene = Scene(make_pod("web", status=make_status("Pending")))
    scene.poster.pod_changed(PodUID("uid-web"))
    scene.poster.update_once()
    assert scene.phases() == {"web": "Pending"}
    scene.statuses.set_pod_status(make_pod("web"), make_status("Running", running("app")))
    scene.poster.update_once()
    assert scene.phases() == {"web": "Running"}


def test_a_pod_that_the_directory_forgets_is_gone() -> None:
    pod = make_pod("web")
    scene = Scene(pod)
    scene.statuses.set_pod_status(pod, make_status("Running", running("app")))
    scene.poster.update_once()
    scene.directory.remove_pod(pod)
    scene.poster.pod_changed(pod.uid)
    scene.poster.update_once()
    assert scene.phases() == {}
    # A later notification does not bring it back.
    scene.statuses.terminate_pod(pod)
    scene.poster.update_once()
    assert scene.phases() == {}


def test_a_change_of_a_mirror_pod_updates_its_static_pod() -> None:
    mirror = make_static_pod("static", mirror=True)
    scene = Scene(make_static_pod("static"), mirror)
    scene.poster.pod_changed(mirror.uid)
    scene.poster.update_once()
    assert list(scene.board.pods()) == ["uid-static"]


def test_many_changes_of_a_pod_are_put_up_once() -> None:
    pod = make_pod("web")
    scene = Scene(pod)
    for ready in (True, False) * 50:
        scene.statuses.set_pod_status(pod, make_status("Running", running("app", ready=ready)))
    scene.poster.update_once()
    assert scene.board.revision == 1


def test_changes_are_put_up_at_once_whatever_thread_they_come_from() -> None:
    pods = [make_pod(f"pod-{number}") for number in range(20)]
    scene = Scene(*pods)

    def report(pod: Pod) -> None:
        scene.statuses.set_pod_status(pod, make_status("Running", running("app")))

    async def live() -> None:
        report(pods[0])
        posting = asyncio.create_task(scene.poster.run())
        await scene.board.wait(0)
        for number, pod in enumerate(pods[1:10], 1):
            report(pod)
            await asyncio.wait_for(scene.board.wait(number), 10)
        threads = [threading.Thread(target=report, args=(pod,)) for pod in pods[10:]]
        for thread in threads:
            thread.start()
        await asyncio.wait_for(scene.board.wait(19), 10)
        for thread in threads:
            thread.join()
        posting.cancel()
        await asyncio.wait({posting})

    asyncio.run(live())
    assert len(scene.phases()) == 20
    # The loop has ended: there is nothing to wake.
    scene.poster.pod_changed(pods[0].uid)
    threading.Thread(target=report, args=(pods[0],)).run()
