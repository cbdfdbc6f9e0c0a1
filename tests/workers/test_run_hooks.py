"""Single hooks: the command or request, and the events of failures."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.containers import Container, Lifecycle
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.probes.decide.http_target import HttpTarget
from podstatus.runtime.port import Runtime, RuntimeDownError
from podstatus.runtime.streams import OutputStream, StreamOptions, StreamUnavailableError
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.workers.lifecycle_hooks import HookRunner
from tests.support.fake_exec_runtime import FakeExecStream, MuteRuntime, TalkingRuntime
from tests.support.pod_services import PodServices
from tests.support.world_in_memory import ListeningRecorder

WHERE = 'for Container "a" in Pod "p_ns(uid-p)" failed - error: '
EXEC = {"exec": {"command": ["sh", "-c", "exit 6"]}}
GET = {"httpGet": {"path": "/bye", "port": "web", "scheme": "HTTP"}}
CONTAINER = from_document(
    {"name": "a", "image": "a:1", "ports": [{"name": "web", "containerPort": 8080}]}, Container
)


class Trial:
    """A hook runner with fakes."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        clock: FakeClock | None = None,
        fails: Exception | None = None,
        fell_back: bool = False,
        host_ips: Sequence[str] = (),
    ) -> None:
        self.clock = clock or FakeClock()
        self.recorder = ListeningRecorder(self.clock)
        self.asked: list[HttpTarget] = []
        self._fails = fails
        self._fell_back = fell_back
        services = PodServices(clock=self.clock, runtime=runtime, recorder=self.recorder)
        self.hooks = HookRunner(services.shared, http_get=self._get, host_ips=lambda: host_ips)

    async def _get(self, target: HttpTarget) -> bool:
        self.asked.append(target)
        if self._fails is not None:
            raise self._fails
        return self._fell_back

    def post_start(self, handler: dict[str, Any]) -> str:
        """The error message of the hook."""
        pod = a_pod(postStart=handler)
        container = (pod.spec.containers or ())[0]
        return asyncio.run(self.hooks.post_start(pod, container, "id"))

    def pre_stop(self, handler: dict[str, Any], seconds: float = 30) -> None:
        attempt = ContainerFacts(name="a", state=ContainerRunState.RUNNING, id="id")
        asyncio.run(self.hooks.pre_stop(a_pod(preStop=handler), attempt, seconds))

    @property
    def events(self) -> list[str]:
        return [f"{t.about} {t.reason}: {t.message}" for t in self.recorder.events]


def a_pod(**hooks: dict[str, Any]) -> Pod:
    pod = make_pod("p", namespace="ns", uid="uid-p")
    container = structs.replace(CONTAINER, lifecycle=from_document(hooks, Lifecycle))
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))


def talking(clock: FakeClock | None = None, *, code: int = 0, said: bytes = b"") -> TalkingRuntime:
    pieces = [(OutputStream.STDERR, said)] if said else []
    talk = FakeExecStream(clock or FakeClock(), pieces=pieces, code=code)
    return TalkingRuntime(lambda: talk, ips=("10.1.2.3", "fd00::3"))


def test_a_command_is_run_where_the_container_is() -> None:
    runtime = talking()
    assert Trial(runtime).post_start(EXEC) == ""
    assert runtime.asked == [("uid-p", "id", ("sh", "-c", "exit 6"), StreamOptions())]


@pytest.mark.parametrize("said", ["", "no", 'say "hi"\n'])
def test_a_command_that_fails_is_quoted_in_the_waiting_message_and_in_no_event(said: str) -> None:
    trial = Trial(talking(code=6, said=said.encode()))
    quoted = said.replace('"', '\\"').replace("\n", "\\n")
    assert trial.post_start(EXEC) == (
        f"Exec lifecycle hook ([sh -c exit 6]) {WHERE}"
        f"command 'sh -c exit 6' exited with 6: {said}, message: \"{quoted}\""
    )
    assert trial.events == ["spec.containers{a} FailedPostStartHook: PostStartHook failed"]


def refuse() -> FakeExecStream:
    raise StreamUnavailableError("the container has ended")


def be_down() -> FakeExecStream:
    raise RuntimeDownError("no answer")


def be_broken() -> FakeExecStream:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("runtime", "why"),
    [
        (MuteRuntime(), "the runtime mute cannot run commands in containers"),
        (TalkingRuntime(refuse), "the container has ended"),
        (TalkingRuntime(be_down), "no answer"),
        (TalkingRuntime(be_broken), "ZeroDivisionError"),
    ],
    ids=["mute", "ended", "down", "broken"],
)
def test_a_command_that_cannot_be_run_is_a_hook_that_fails(runtime: Runtime, why: str) -> None:
    trial = Trial(runtime)
    assert why in trial.post_start(EXEC)
    trial.pre_stop(EXEC)
    assert trial.events == [
        "spec.containers{a} FailedPostStartHook: PostStartHook failed",
        "spec.containers{a} FailedPreStopHook: PreStopHook failed",
    ]


@pytest.mark.parametrize(
    ("ips", "host_ips", "host", "asked"),
    [
        (["10.1.2.3", "fd00::3"], ["192.168.7.1"], "", "10.1.2.3"),
        (["fd00::3"], [], "", "[fd00::3]"),
        ([], ["192.168.7.1"], "", "192.168.7.1"),
        (["10.1.2.3"], [], "shop.test", "shop.test"),
    ],
    ids=["own", "v6", "of the node", "named"],
)
def test_a_request_goes_to_the_pod(
    ips: list[str], host_ips: list[str], host: str, asked: str
) -> None:
    trial = Trial(MuteRuntime(ips), host_ips=host_ips)
    assert trial.post_start({"httpGet": {**GET["httpGet"], "host": host}}) == ""
    assert [target.url for target in trial.asked] == [f"http://{asked}:8080/bye"]
    assert ("User-Agent", "kube-lifecycle/1.36") in trial.asked[0].headers
    assert trial.events == []


@pytest.mark.parametrize(
    ("runtime", "handler", "why"),
    [
        (MuteRuntime(), GET, "the pod has no IP address yet"),
        (
            MuteRuntime(["10.1.2.3"]),
            {"httpGet": {"path": "/bye", "port": "other"}},
            "port other not found; name one of the container's ports, or give a number",
        ),
        (MuteRuntime(["10.1.2.3"]), GET, "connection refused"),
    ],
    ids=["no address", "no port", "no answer"],
)
def test_a_request_that_cannot_be_made_is_a_hook_that_fails(
    runtime: Runtime, handler: dict[str, Any], why: str
) -> None:
    trial = Trial(runtime, fails=ConnectionError("connection refused"))
    assert trial.post_start(handler) == f"HTTP lifecycle hook (/bye) {WHERE}{why}"
    assert trial.events == ["spec.containers{a} FailedPostStartHook: PostStartHook failed"]


def test_a_fallback_to_plain_http_has_an_event() -> None:
    trial = Trial(MuteRuntime(["10.1.2.3"]), fell_back=True)
    trial.pre_stop({"httpGet": {"path": "bye?x=http://y/", "port": 8443, "scheme": "HTTPS"}})
    (event,) = trial.events
    assert event == (
        "p LifecycleHTTPFallback: request to HTTPS lifecycle hook 10.1.2.3:8443 got HTTP "
        "response, retry with HTTP succeeded"
    )


@pytest.mark.parametrize("handler", [{"tcpSocket": {"port": 80}}, {}], ids=["tcpSocket", "nothing"])
def test_what_is_no_hook_fails(handler: dict[str, Any]) -> None:
    trial = Trial(talking())
    assert trial.post_start(handler) == (
        "Cannot run handler: it is neither exec, httpGet nor sleep"
    )


@pytest.mark.parametrize(
    ("state", "seconds"),
    [
        (ContainerRunState.EXITED, 30),
        (ContainerRunState.CREATED, 30),
        (ContainerRunState.UNKNOWN, 30),
        (ContainerRunState.RUNNING, 0),
    ],
)
def test_there_is_no_hook_before_a_stop_without_a_process_or_time(
    state: ContainerRunState, seconds: float
) -> None:
    runtime = talking()
    trial, attempt = Trial(runtime), ContainerFacts(name="a", state=state, id="id")
    asyncio.run(trial.hooks.pre_stop(a_pod(preStop=EXEC), attempt, seconds))
    assert runtime.asked == []


def test_a_container_that_the_spec_does_not_know_has_no_hook() -> None:
    runtime = talking()
    attempt = ContainerFacts(name="other", state=ContainerRunState.RUNNING, id="id")
    asyncio.run(Trial(runtime).hooks.pre_stop(a_pod(preStop=EXEC), attempt, 30))
    assert runtime.asked == []


async def test_a_command_that_is_cut_short_has_ended_when_the_stop_goes_on() -> None:
    clock = FakeClock()
    talk = FakeExecStream(clock, takes=100)
    trial = Trial(TalkingRuntime(lambda: talk), clock=clock)
    attempt = ContainerFacts(name="a", state=ContainerRunState.RUNNING, id="id")
    stopping = asyncio.ensure_future(trial.hooks.pre_stop(a_pod(preStop=EXEC), attempt, seconds=5))
    await clock.advance(5)
    assert stopping.done()
    assert talk.is_closed
    assert trial.events == ["spec.containers{a} FailedPreStopHook: PreStopHook failed"]
