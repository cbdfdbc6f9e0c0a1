"""Others write to the status of a pod, on both servers and both runtimes."""

import time
from collections.abc import Iterator

import pytest

from tests.servers.pods import pods
from tests.support.processes.agent_process import (
    AgentProcess,
    Cluster,
    Document,
    agent,
    condition,
    is_ready,
    make_pod,
    until,
)
from tests.support.processes.api_servers import NODES, Server

NODE = NODES[14]
QUICK_SECONDS = 5.0
"""It takes some milliseconds, but for a busy machine; the reconcile comes every ten seconds."""
MOST_CORRECTIONS = 5
"""Three at once, one by the reconcile, and one if it came just then."""
HOSTILE_SECONDS = 10.0
NO_GATE = 'corresponding condition of pod readiness gate "{}" does not exist.'
CLOSED = 'the status of pod readiness gate "{}" is not "True", but False'


@pytest.fixture(scope="module", params=["simulated", "process"])
def started(
    each_server: Server, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentProcess]:
    access = each_server.node_access(NODE)
    folder = tmp_path_factory.mktemp("foreign")
    options = ("--runtime", request.param, *_WITHOUT_ISOLATION.get(request.param, ()))
    with agent(folder, *options, kubeconfig=access.kubeconfig, node=NODE) as started:
        started.start()
        started.wait_ready(Cluster(each_server.access, NODE))
        yield started
        for pod in _left(each_server):
            each_server.client.delete(pods(pod["metadata"]["namespace"], pod["metadata"]["name"]))
        until(lambda: not _left(each_server), started.log)
        started.stop()
        each_server.client.delete(f"/api/v1/nodes/{NODE}")


_WITHOUT_ISOLATION = {"process": ("--isolation", "none")}


def _left(server: Server) -> list[Document]:
    return list(server.client.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}")[1]["items"])


class Scene:
    """A pod that others write to."""

    def __init__(self, server: Server, namespace: str, started: AgentProcess) -> None:
        self.server = server
        self.namespace = namespace
        self.started = started
        self.cluster = Cluster(server.access, NODE, namespace)

    def create(self, **spec: object) -> Document:
        # A node of the process runtime keeps away pods that do not ask for it.
        spec |= {"terminationGracePeriodSeconds": 1, "tolerations": [{"operator": "Exists"}]}
        body = make_pod("p", "", NODE, **spec)
        body["spec"]["containers"][0]["command"] = ["sleep", "600"]
        self.cluster.create(body)
        return self.cluster.wait_for("p", lambda pod: _is(pod, "ContainersReady", "True"))

    def write(self, status: Document, manager: str = "kubectl-edit") -> Document:
        path = f"{pods(self.namespace, 'p', 'status')}?fieldManager={manager}"
        code, answer = self.server.client.patch(path, {"status": status})
        assert code == 200, answer
        written: Document = answer
        return written

    def say(self, **conditions: str) -> Document:
        said = [{"type": kind, "status": status} for kind, status in conditions.items()]
        return self.write({"conditions": said})

    def wait_ready(self, status: str, message: str = "") -> Document:
        def is_right(pod: Document) -> bool:
            ready = condition(pod, "Ready")
            return (ready.get("status"), ready.get("message", "")) == (status, message)

        return self.cluster.wait_for("p", is_right)

    def told(self, text: str = "") -> Document:
        """The event about what others wrote."""
        text = f"Pod {self.namespace}/p: {text}"
        return self.cluster.wait_for_event("ForeignStatusWrite", NODE, text)


def _is(pod: Document, kind: str, status: str) -> bool:
    return bool(condition(pod, kind).get("status") == status)


@pytest.fixture
def scene(each_server: Server, started: AgentProcess) -> Scene:
    return Scene(each_server, each_server.new_namespace(), started)


@pytest.mark.slow
def test_a_foreign_ready_is_set_back_at_once_and_the_writer_named(scene: Scene) -> None:
    scene.create()
    before = condition(scene.wait_ready("True"), "Ready")
    meddled = {"type": "Ready", "status": "False", "reason": "Meddling"}
    began = time.monotonic()
    scene.write({"conditions": [meddled]})
    after = condition(scene.wait_ready("True"), "Ready")
    assert time.monotonic() - began < QUICK_SECONDS
    assert after["lastTransitionTime"] == before["lastTransitionTime"]
    event = scene.told()
    assert event["type"] == "Warning"
    assert event["message"] == (
        f"Pod {scene.namespace}/p: "
        'Condition Ready was set to False (reason Meddling) by "kubectl-edit"; '
        "the node owns it and has set it back to True"
    )


@pytest.mark.slow
def test_a_pod_that_others_call_failed_runs_on(scene: Scene) -> None:
    before = scene.create()
    scene.write({"phase": "Failed"}, "gc")
    after = scene.cluster.wait_for("p", lambda pod: pod["status"]["phase"] == "Running")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    told = 'Field phase was set to Failed by "gc"; the node owns it and has set it back to Running'
    scene.told(told)


@pytest.mark.slow
def test_a_writer_that_never_stops_is_not_answered_each_time(scene: Scene) -> None:
    scene.create()
    scene.wait_ready("True")
    path = f"{pods(scene.namespace)}?watch=true&timeoutSeconds={HOSTILE_SECONDS:.0f}"
    writes = 0
    with scene.server.watch(path) as watch:
        end = time.monotonic() + HOSTILE_SECONDS - 1
        while time.monotonic() < end:
            scene.say(Ready="False")
            writes += 1
            time.sleep(0.1)
        seen = [event["object"] for event in watch.rest() if event["type"] == "MODIFIED"]
    corrections = sum(map(is_ready, seen))
    assert writes > 2 * MOST_CORRECTIONS
    assert 1 <= corrections <= MOST_CORRECTIONS
    scene.wait_ready("True")
    assert scene.told().get("count", 1) == 1


@pytest.mark.slow
def test_ready_follows_the_gates_that_others_set_also_over_a_restart(scene: Scene) -> None:
    gates = ("example.com/one", "example.com/two")
    scene.create(readinessGates=[{"conditionType": gate} for gate in gates])
    one, two = gates
    scene.wait_ready("False", f"{NO_GATE.format(one)}, {NO_GATE.format(two)}")
    scene.say(**{two: "True"})
    scene.wait_ready("False", NO_GATE.format(one))
    began = time.monotonic()
    scene.say(**{one: "True"})
    opened = scene.wait_ready("True")
    assert time.monotonic() - began < QUICK_SECONDS
    assert scene.started.stop() == 0
    scene.started.start()
    scene.started.wait_ready(scene.cluster)
    scene.started.wait_serving()
    assert condition(scene.wait_ready("True"), "Ready") == condition(opened, "Ready")
    scene.say(**{two: "False"})
    scene.wait_ready("False", CLOSED.format(two))
    scene.write({"conditions": [{"type": two, "$patch": "delete"}]})
    scene.wait_ready("False", NO_GATE.format(two))
    scene.say(**{two: "True"})
    scene.wait_ready("True")
