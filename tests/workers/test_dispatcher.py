"""Changes of the desired pods: rejection, updates, removal."""

from pathlib import Path

from msgspec import structs

from podstatus.kube.objects.pod import CONFIG_MIRROR, CONFIG_SOURCE, Pod
from podstatus.sources.decide.pod_changes import PodAdded, PodReconciled, PodUpdated
from tests.support.node_in_memory import NodeInMemory, a_pod, asking

REASON = "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000"


def labelled(pod: Pod, **labels: str) -> Pod:
    """The pod with labels."""
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))


async def test_a_pod_that_does_not_fit_is_rejected(node: NodeInMemory) -> None:
    node.create(asking(a_pod("p"), "5"))
    await node.passes(5)
    assert node.looks("p") == "Failed/OutOfcpu"
    pod = node.pod("p")
    assert pod is not None
    assert pod.status.message == f"Pod was rejected: {REASON}"
    assert node.events("p") == [f"OutOfcpu: {REASON}"]
    assert node.calls() == []
    assert node.agent.lives.all() == ()


async def test_an_update_does_not_start_a_rejected_pod(node: NodeInMemory) -> None:
    rejected = asking(a_pod("p"), "5")
    node.create(rejected)
    await node.passes(1)
    shown = node.pod("p")
    assert shown is not None
    node.api.put(labelled(asking(shown, "1"), color="blue"))
    await node.passes(100)
    assert node.looks("p") == "Failed/OutOfcpu"
    assert node.calls("start") == []


async def test_an_update_before_the_rejection_does_not_start_the_pod(node: NodeInMemory) -> None:
    rejected = asking(a_pod("p"), "5")
    node.create(rejected)
    await node.passes(1)
    # Written by a client that has not seen the rejection.
    node.agent.mux.update("api", labelled(asking(rejected, "1"), color="blue"))
    await node.passes(100)
    assert node.calls("start") == []


async def test_a_rejected_pod_that_is_deleted_goes(node: NodeInMemory) -> None:
    node.create(asking(a_pod("p"), "5"))
    await node.passes(1)
    node.delete("p")
    await node.passes(2)
    assert node.shown("p") == ["new", "Failed/OutOfcpu", "gone"]
    assert node.agent.lives.all() == ()


async def test_a_rejected_pod_that_is_taken_away_is_forgotten(node: NodeInMemory) -> None:
    node.create(asking(a_pod("p"), "5"))
    await node.passes(1)
    node.force_delete("p")
    await node.passes(3)
    assert node.agent.statuses.entries() == {}


async def test_a_rejection_is_sent_when_the_server_is_back(node: NodeInMemory) -> None:
    node.create(asking(a_pod("p"), "5"))
    node.server_is_away()
    await node.passes(60)
    assert node.looks("p") == "new"
    node.server_is_back()
    await node.passes(60)
    assert node.looks("p") == "Failed/OutOfcpu"


async def test_a_rejected_pod_with_ending_containers_stays_rejected(node: NodeInMemory) -> None:
    pod = asking(a_pod("p", "stop=10s, kill=10s"), "5")
    await node.runtime.start_pod(pod)
    assert pod.spec.containers is not None
    await node.runtime.start_container(pod, pod.spec.containers[0], restart_count=0)
    node.server_is_away()
    node.agent.mux.update("api", pod)
    await node.passes(3)
    # Written by a client that has not seen the rejection.
    node.agent.mux.update("api", labelled(pod, color="blue"))
    await node.passes(30)
    assert node.calls("start") == ["start p sandbox", "start p a-0"]
    assert await node.runtime.running("uid-p") == []


async def test_pods_that_have_ended_make_room(node: NodeInMemory) -> None:
    node.create(asking(a_pod("p", "run=2s", policy="Never"), "3"))
    await node.passes(1)
    node.create(asking(a_pod("q"), "3"))
    await node.passes(5)
    assert node.looks("q") == "Failed/OutOfcpu"
    node.create(asking(a_pod("r"), "3"))
    await node.passes(1)
    assert node.looks("r") == "Running a:running+"


async def test_a_running_pod_is_not_judged_again_when_it_changes(node: NodeInMemory) -> None:
    node.create(asking(a_pod("p"), "3"))
    await node.passes(1)
    shown = node.pod("p")
    assert shown is not None
    node.agent.dispatcher.handle(PodAdded((asking(shown, "30"),)))
    await node.passes(1)
    assert node.looks("p") == "Running a:running+"


async def test_the_oldest_pods_are_taken_first_after_a_restart(node: NodeInMemory) -> None:
    for name in ("p", "q"):
        node.create(asking(a_pod(name), "2"))
        await node.passes(1)
    await node.restart()
    await node.passes(5)
    assert node.looks("p") == node.looks("q") == "Running a:running+"


async def test_what_was_granted_counts_and_not_what_is_asked_for(tmp_path: Path) -> None:
    async with NodeInMemory(state_folder=tmp_path) as node:
        for name in ("p", "q"):
            node.create(asking(a_pod(name), "2"))
            await node.passes(1)
        resized = node.pod("p")
        assert resized is not None
        node.api.put(asking(resized, "3"))
        await node.restart()
        await node.passes(5)
        assert node.looks("p") == node.looks("q") == "Running a:running+"
        node.create(asking(a_pod("r"), "10m"))
        await node.passes(1)
        (event,) = node.events("r")
        assert event.endswith("cpu, requested: 10, used: 4000, capacity: 4000")


async def test_a_mirror_pod_has_no_worker(node: NodeInMemory) -> None:
    mirror = a_pod("s-node")
    assert mirror.metadata.annotations is not None
    mirror.metadata.annotations.update({CONFIG_SOURCE: "api", CONFIG_MIRROR: "hash"})
    node.create(mirror)
    await node.passes(5)
    for change in (PodUpdated(mirror), PodReconciled(mirror)):
        node.agent.dispatcher.handle(change)
    await node.passes(5)
    assert [pod.name for pod in node.agent.directory.mirror_pods()] == ["s-node"]
    assert node.agent.lives.all() == ()
    assert node.calls() == []


async def test_a_changed_image_restarts_the_container(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(1)
    shown = node.pod("p")
    assert shown is not None
    assert shown.spec.containers is not None
    containers = (structs.replace(shown.spec.containers[0], image="a:2"),)
    spec = structs.replace(shown.spec, containers=containers)
    node.api.put(structs.replace(shown, spec=spec))
    await node.passes(1)
    assert node.looks("p") == "Running a:running+(1)"
    assert node.events("p", "Killing") == [
        "Killing: Container a definition changed, will be restarted"
    ]
