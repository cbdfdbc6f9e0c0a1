"""Pods on a whole node in virtual time: what the API server shows, and what the runtime is asked."""

from pathlib import Path

import pytest

from podstatus.kube.pod import Pod, PodUID
from podstatus.workers.life import Ending, Stage
from podstatus.workers.policy import WorkerPolicy
from tests.workers.node_in_memory import NodeInMemory, a_pod, in_loop

# It runs, ends, and is restarted


@in_loop
async def test_a_pod_runs() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "start=2s"))
        await node.passes(3)
        assert node.shown_at("p") == [
            (0.0, "new"),
            (0.0, "Pending a:ContainerCreating"),
            (2.0, "Running a:running+"),
        ]
        assert node.events("p") == [
            'Pulled: Container image "a:1" already present on machine and can be accessed by the '
            "pod",
            "Created: Container created",
            "Started: Container started",
        ]
        assert node.calls() == ["start p sandbox", "start p a-0"]


@in_loop
async def test_a_crash_loop_waits_longer_each_time() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "start=100ms, run=2s, exit=1"))
        await node.passes(170)
        assert node.shown_at("p") == [
            (0.0, "new"),
            (0.0, "Pending a:ContainerCreating"),
            (0.1, "Running a:running+"),
            (2.1, "Running a:exit-1"),
            (2.2, "Running a:running+(1)"),
            (4.2, "Running a:exit-1(1)"),
            (14.2, "Running a:CrashLoopBackOff(1)"),
            (14.3, "Running a:running+(2)"),
            (16.3, "Running a:exit-1(2)"),
            (36.3, "Running a:CrashLoopBackOff(2)"),
            (36.4, "Running a:running+(3)"),
            (38.4, "Running a:exit-1(3)"),
            (78.4, "Running a:CrashLoopBackOff(3)"),
            (78.5, "Running a:running+(4)"),
            (80.5, "Running a:exit-1(4)"),
            # It is looked at once a minute, whatever it waits for.
            (140.5, "Running a:CrashLoopBackOff(4)"),
            (160.6, "Running a:running+(5)"),
            (162.6, "Running a:exit-1(5)"),
        ]
        assert set(node.events("p", "BackOff")) == {
            "BackOff: Back-off restarting failed container a in pod p_ns(uid-p)"
        }
        assert node.event_seconds("p", "BackOff") == [4.2, 16.3, 38.4, 80.5, 140.5, 162.6]


@in_loop
async def test_a_crash_loop_says_how_long_it_waits() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "start=100ms, run=2s, exit=1"))
        await node.passes(14.2)
        assert _waiting_message(node, "p") == (
            "back-off 10s restarting failed container=a pod=p_ns(uid-p)"
        )
        await node.passes(22.1)
        assert _waiting_message(node, "p") == (
            "back-off 20s restarting failed container=a pod=p_ns(uid-p)"
        )


@pytest.mark.parametrize(
    ("policy", "exit_code", "looks"),
    [
        ("Never", 0, "Succeeded a:exit-0"),
        ("Never", 3, "Failed a:exit-3"),
        ("OnFailure", 0, "Succeeded a:exit-0"),
        ("OnFailure", 3, "Running a:exit-3(1)"),
        ("Always", 0, "Running a:exit-0(1)"),
    ],
)
@in_loop
async def test_what_becomes_of_a_pod_whose_container_ends(
    policy: str, exit_code: int, looks: str
) -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", f"run=2s, exit={exit_code}", policy=policy))
        await node.passes(8)
        assert node.looks("p") == looks


@in_loop
async def test_a_completed_pod_is_left_alone() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "run=2s", policy="Never"))
        await node.passes(3)
        node.runtime.calls.clear()
        await node.passes(600)
        assert node.looks("p") == "Succeeded a:exit-0"
        assert node.calls() == []
        assert await node.runtime.has("uid-p"), "its records stay until it is deleted"
        assert node.agent.lives.get(PodUID("uid-p")).stage is Stage.FINISHED  # type: ignore[union-attr]


@in_loop
async def test_init_containers_run_one_after_the_other() -> None:
    async with NodeInMemory() as node:
        scripts = {"i": "run=2s", "j": "run=3s"}
        node.create(a_pod("p", init=["i", "j"], scripts=scripts))
        await node.passes(6)
        assert node.shown_at("p")[1:] == [
            (0.0, "Pending i:running j:PodInitializing a:PodInitializing"),
            (2.0, "Pending i:exit-0+ j:running a:PodInitializing"),
            (5.0, "Running i:exit-0+ j:exit-0+ a:running+"),
        ]


@in_loop
async def test_an_init_container_that_fails_ends_a_pod_that_is_not_restarted() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", init=["i"], scripts={"i": "run=2s, exit=1"}, policy="Never"))
        await node.passes(6)
        assert node.looks("p") == "Failed i:exit-1 a:PodInitializing"
        assert node.calls("start") == ["start p sandbox", "start p i-0"]


@in_loop
async def test_sidecars_start_first_and_stop_last() -> None:
    async with NodeInMemory() as node:
        scripts = {"a": "stop=3s", "s": "stop=1s", "t": "stop=1s"}
        node.create(a_pod("p", sidecars=["s", "t"], scripts=scripts))
        await node.passes(5)
        assert node.looks("p") == "Running s:running+ t:running+ a:running+"
        node.delete("p", grace=20)
        await node.passes(10)
        assert node.calls("start") == [f"start p {x}" for x in ("sandbox", "s-0", "t-0", "a-0")]
        assert node.calls("stop")[:4] == [
            "stop p a within 20",
            "stop p t within 17",
            "stop p s within 16",
            "stop p sandbox",
        ]
        assert node.looks("p") == "gone"


@in_loop
async def test_a_sidecar_does_not_keep_a_pod_alive() -> None:
    async with NodeInMemory() as node:
        node.create(
            a_pod("p", sidecars=["s"], scripts={"a": "run=3s", "s": "stop-exit=4"}, policy="Never")
        )
        await node.passes(5)
        assert node.looks("p") == "Succeeded s:exit-4 a:exit-0"


@in_loop
async def test_a_pod_past_its_deadline_has_failed() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", deadline=5))
        await node.passes(4.5)
        assert node.looks("p") == "Running a:running+"
        await node.passes(1)
        assert node.looks("p") == "Failed/DeadlineExceeded a:exit-0"
        assert node.events("p", "DeadlineExceeded", "Killing") == [
            "DeadlineExceeded: Pod was active on the node longer than the specified deadline",
            "Killing: Stopping container a",
        ]
        assert await node.runtime.running("uid-p") == []


@in_loop
async def test_what_the_node_ends_says_why() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "stop=2s"))
        await node.passes(1)
        node.agent.workers.kill(
            PodUID("uid-p"), Ending(reason="Evicted", message="no memory"), grace_seconds=5
        )
        await node.passes(3)
        assert node.looks("p") == "Failed/Evicted a:exit-0"
        assert node.calls("stop")[0] == "stop p a within 5"


# It cannot be started


@in_loop
async def test_a_failed_start_is_shown_at_once_and_tried_again() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "fail=ErrImageNeverPull"))
        await node.passes(0)
        assert node.looks("p") == "Pending a:ErrImageNeverPull"
        await node.passes(9.9)
        assert node.calls("start") == ["start p sandbox", "start p a-0"]
        await node.passes(0.2)
        assert node.calls("start") == ["start p sandbox", "start p a-0", "start p a-0"]


@in_loop
async def test_failed_starts_are_spread_over_half_their_wait() -> None:
    async with NodeInMemory(chance=1.0) as node:
        node.create(a_pod("p", "fail=ErrImageNeverPull"))
        await node.passes(14.9)
        assert len(node.calls("start")) == 2
        await node.passes(0.2)
        assert len(node.calls("start")) == 3


@in_loop
async def test_an_init_container_that_cannot_start_holds_the_others_up() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", init=["i"], scripts={"i": "fail=ErrImageNeverPull"}))
        await node.passes(25)
        assert set(node.calls("start")) == {"start p sandbox", "start p i-0"}


@in_loop
async def test_a_container_that_cannot_start_holds_nobody_up() -> None:
    async with NodeInMemory() as node:
        scripts = {"a": "fail=CreateContainerConfigError"}
        node.create(a_pod("p", containers=["a", "b"], scripts=scripts))
        await node.passes(1)
        assert node.looks("p") == "Pending a:CreateContainerConfigError b:running+"


@in_loop
async def test_a_runtime_that_does_nothing_is_not_asked_again_and_again() -> None:
    async with NodeInMemory() as node:
        node.runtime.lies = True
        node.create(a_pod("p"))
        await node.passes(59)
        assert len(node.calls("start")) == 2 * 6  # a sandbox and a container, every 10 s
        node.runtime.lies = False
        await node.passes(10)
        assert node.looks("p") == "Running a:running+"


@in_loop
async def test_a_runtime_that_ends_nothing_is_not_asked_again_and_again() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p"))
        await node.passes(1)
        node.runtime.lies = True
        node.delete("p")
        await node.passes(59)
        assert len(node.calls("stop")) == 2 * 6
        assert node.looks("p") == "Running a:running+"
        assert node.events("p", "FailedKillPod")[0].startswith(
            "FailedKillPod: error killing pod: the runtime still runs simulated://"
        )
        node.runtime.lies = False
        await node.passes(12)
        assert node.looks("p") == "gone"


@in_loop
async def test_a_runtime_that_is_down_is_waited_for() -> None:
    async with NodeInMemory() as node:
        node.runtime.is_down = True
        node.create(a_pod("p"))
        await node.passes(25)
        assert node.events("p") == ["FailedSync: error determining status: no answer"] * 3
        assert node.event_seconds("p", "FailedSync") == [0, 10, 20]
        node.runtime.is_down = False
        await node.passes(5.1)
        assert node.looks("p") == "Running a:running+"


@in_loop
async def test_a_runtime_that_is_down_changes_no_status() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p"))
        await node.passes(1)
        node.runtime.is_down = True
        await node.passes(300)
        assert node.shown("p") == ["new", "Running a:running+"]


# It is deleted


@in_loop
async def test_a_deleted_pod_ends_is_told_reclaimed_and_goes() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "stop=2s, stop-exit=5"))
        await node.passes(1)
        node.api.before_delete = lambda _: node.runtime.calls.append("DELETE")
        node.delete("p", grace=20)
        await node.passes(1)
        assert node.looks("p") == "Running a:running+"
        assert node.events("p", "Killing") == ["Killing: Stopping container a"]
        await node.passes(5)
        assert node.shown_at("p")[2:] == [(3.0, "Failed a:exit-5"), (3.1, "gone")]
        assert node.calls()[2:] == [
            "stop p a within 20",
            "stop p sandbox",
            "remove p pod",
            "stop p sandbox",
            "DELETE",
        ]
        assert not await node.runtime.has("uid-p")
        assert node.agent.lives.all() == ()


@in_loop
async def test_records_stay_until_the_last_status_has_arrived() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "stop=2s, stop-exit=5"))
        await node.passes(1)
        node.delete("p", grace=20)
        await node.passes(1)
        node.server_is_away()
        await node.passes(300)
        assert await node.runtime.running("uid-p") == []
        assert await node.runtime.has("uid-p")
        assert node.looks("p") == "Running a:running+"
        node.server_is_back()
        await node.passes(60)
        assert node.shown("p")[2:] == ["Failed a:exit-5", "gone"]
        assert not await node.runtime.has("uid-p")


@in_loop
async def test_a_completed_pod_that_is_deleted_is_reclaimed_and_goes() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "run=2s", policy="Never"))
        await node.passes(10)
        node.delete("p")
        await node.passes(1)
        assert node.shown("p")[2:] == ["Succeeded a:exit-0", "gone"]
        assert not await node.runtime.has("uid-p")
        assert node.events("p", "Killing") == []


@in_loop
async def test_a_pod_that_was_taken_away_is_ended_and_forgotten() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "stop=2s"))
        await node.passes(1)
        node.force_delete("p")
        await node.passes(1)
        assert await node.runtime.running("uid-p") == ["a"]
        await node.passes(5)
        assert not await node.runtime.has("uid-p")
        assert node.agent.lives.all() == ()
        assert node.agent.statuses.entries() == {}


@pytest.mark.parametrize("how", ["delete", "force_delete"])
@in_loop
async def test_deletion_interrupts_a_start_that_hangs(how: str) -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "start=never"))
        await node.passes(5)
        assert node.looks("p") == "Pending a:ContainerCreating"
        getattr(node, how)("p")
        await node.passes(2)
        assert node.looks("p") == "gone"
        assert not await node.runtime.has("uid-p")


@in_loop
async def test_a_start_that_takes_its_time_to_be_interrupted_is_told_once() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "start=never"))
        await node.passes(5)
        node.runtime.interruption = 3
        node.delete("p")
        await node.passes(1)
        node.force_delete("p")  # while the start is on its way out
        await node.passes(5)
        assert not await node.runtime.has("uid-p")
        assert node.agent.lives.all() == ()


@in_loop
async def test_a_deletion_with_less_grace_shortens_the_first() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "stop=never", grace=300))
        await node.passes(1)
        node.delete("p", grace=300)
        await node.passes(5)
        node.delete("p", grace=2)
        await node.passes(3)
        assert node.shown("p")[2:] == ["Failed a:exit-137", "gone"]


@in_loop
async def test_a_container_that_nobody_can_end_keeps_its_pod() -> None:
    async with NodeInMemory() as node:
        node.create(a_pod("p", "stop=never, kill=never"))
        await node.passes(1)
        node.delete("p", grace=2)
        await node.passes(600)
        assert node.looks("p") == "Running a:running+"


@in_loop
async def test_terminated_pods_may_keep_what_they_left_until_they_are_gone() -> None:
    async with NodeInMemory(policy=WorkerPolicy(keep_terminated_pod_volumes=True)) as node:
        node.create(a_pod("p"))
        await node.passes(1)
        was_there = []
        node.api.before_delete = lambda _: was_there.append("remove p pod" in node.calls())
        node.delete("p")
        await node.passes(1)
        assert node.looks("p") == "gone"
        assert was_there == [False]
        await node.passes(5)
        assert not await node.runtime.has("uid-p")
        assert node.agent.lives.all() == ()
        calls = len(node.calls())
        await node.passes(60)
        assert len(node.calls()) == calls


# Static pods


def a_static_pod(script: str = "", *, uid: str = "uid-s") -> Pod:
    pod = a_pod("s", script, uid=uid)
    assert pod.metadata.annotations is not None
    pod.metadata.annotations["kubernetes.io/config.source"] = "file"
    return pod


@pytest.mark.parametrize("away", [0.1, 1, 2.9])
@in_loop
async def test_a_static_pod_that_comes_back_starts_again_after_its_end(away: float) -> None:
    async with NodeInMemory() as node:
        pod = a_static_pod("stop=3s")
        node.write_manifests(pod)
        await node.passes(1)
        node.write_manifests()
        await node.passes(away)
        node.write_manifests(pod)
        await node.passes(0)
        assert node.calls("start") == ["start s sandbox", "start s a-0"]
        await node.passes(5)
        assert node.calls("start", "remove") == [
            "start s sandbox",
            "start s a-0",
            "remove s pod",
            "start s sandbox",
            "start s a-0",
        ]
        status = node.agent.statuses.pod_status("uid-s")
        assert status is not None
        assert status.phase == "Running"


@in_loop
async def test_a_changed_manifest_waits_for_the_end_of_the_old_one() -> None:
    async with NodeInMemory() as node:
        node.write_manifests(a_static_pod("stop=3s", uid="old"))
        await node.passes(1)
        node.write_manifests(a_static_pod(uid="new"))
        await node.passes(2)
        assert await node.runtime.running("old") == ["a"]
        assert not await node.runtime.has("new")
        await node.passes(1.1)
        assert not await node.runtime.has("old")
        assert await node.runtime.running("new") == ["a"]


@in_loop
async def test_a_manifest_that_is_taken_back_while_it_waits_never_starts() -> None:
    async with NodeInMemory() as node:
        node.write_manifests(a_static_pod("stop=3s", uid="old"))
        await node.passes(1)
        node.write_manifests(a_static_pod(uid="new"))
        await node.passes(1)
        node.write_manifests()
        await node.passes(10)
        assert node.calls("start") == ["start s sandbox", "start s a-0"]
        assert node.agent.lives.all() == ()


# The agent is restarted


@in_loop
async def test_running_pods_are_taken_over(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p"))
        await node.passes(5)
        await node.restart(after=20)
        await node.passes(60)
        assert node.shown("p") == ["new", "Running a:running+"]
        assert node.calls() == []


@in_loop
async def test_completed_pods_are_not_started_again(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p", "run=2s", policy="Never"))
        await node.passes(5)
        await node.restart(after=20)
        await node.passes(60)
        assert node.looks("p") == "Succeeded a:exit-0"
        assert node.calls("start") == []


@in_loop
async def test_what_ended_meanwhile_is_shown_with_its_exit(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p", "run=5s, exit=3", policy="Never"))
        node.create(a_pod("q", "run=5s, exit=3"))
        await node.passes(1)
        await node.restart(after=20)
        await node.passes(2)
        assert node.looks("p") == "Failed a:exit-3"
        assert node.looks("q") == "Running a:running+(1)"


@in_loop
async def test_a_pod_deleted_meanwhile_ends(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p"))
        node.create(a_pod("q"))
        await node.passes(1)
        await node.stop()
        node.delete("p")
        node.force_delete("q")
        await node.restart()
        await node.passes(5)
        assert node.looks("p") == "gone"
        assert not await node.runtime.has("uid-p")
        assert not await node.runtime.has("uid-q")


@in_loop
async def test_the_agent_stops_in_the_middle_of_a_deletion(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p", "stop=10s, stop-exit=5"))
        await node.passes(1)
        node.delete("p")
        await node.passes(2)
        await node.restart(after=1)
        await node.passes(12)
        assert node.shown("p")[2:] == ["Failed a:exit-5", "gone"]


def _waiting_message(node: NodeInMemory, name: str) -> str:
    pod = node.pod(name)
    assert pod is not None
    assert pod.status.container_statuses is not None
    waiting = pod.status.container_statuses[0].state.waiting
    return "" if waiting is None else waiting.message
