"""Alert taints follow the firing alerts; other taints are left alone."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from msgspec import structs

from podstatus.alerts.actions.desired_taints import desired_taints
from podstatus.alerts.actions.guarded_remediation import GuardedRemediation
from podstatus.alerts.actions.name_prefix import PREFIX
from podstatus.alerts.actions.node_taints import AlertTaints
from podstatus.alerts.actions.remediations import TaintNode
from podstatus.alerts.model import Action, Alert, AlertId, RuleSet, Subject
from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.client import ApiClient, HttpNodeApi, kubeconfig_config
from podstatus.kube.api_errors import ApiError, ConflictError, DeniedError
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.node import Node, NodeSpec, Taint
from podstatus.node.node_cache import NodeCache
from podstatus.testing.clock import FakeClock
from podstatus.testing.servers.access import ServerAccess
from tests.support.processes.api_servers import NODES, RealServer
from tests.support.processes.api_servers import Server as ApiServer

THEIRS = Taint(key="theirs", effect="NoSchedule")
ACTION = Action(kind="taintNode", options={"key": "full"})
ALERT = Alert(
    id=AlertId("1"),
    rule="Bad",
    subject=Subject(scope="node", name="n", node="n"),
    state="firing",
    since=1,
    fired=2,
)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=f"{PREFIX}{key}", value=value, effect=effect)


FULL = taint("full")


class Server:
    """A partial `NodeApi` with one node, which fails with these errors in turn."""

    def __init__(self, *taints: Taint) -> None:
        self.failures: list[ApiError] = []
        self.asked = 0
        self.patches: list[dict[str, object]] = []
        meta = ObjectMeta(name="n", uid="u", resource_version="7")
        self.node = Node(metadata=meta, spec=NodeSpec(taints=taints))

    async def get_node(self, name: str) -> Node:
        self.asked += 1
        return self.node

    async def patch_node(self, name: str, patch: bytes) -> Node:
        if self.failures:
            raise self.failures.pop(0)
        document = msgspec.json.decode(patch)
        self.patches.append(document)
        taints = msgspec.convert(document["spec"]["taints"], tuple[_Plain, ...])
        spec = NodeSpec(taints=tuple(Taint(**structs.asdict(it)) for it in taints))
        self.node = structs.replace(self.node, spec=spec)
        return self.node


class _Plain(msgspec.Struct):
    key: str
    effect: str
    value: str = ""


class Events:
    """Records events about the node."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def normal(self, reason: str, message: str) -> None:
        self.messages.append(f"{reason} {message}")

    def warn(self, reason: str, message: str) -> None:
        self.messages.append(f"{reason} {message}")


class Scene:
    """A node that has these taints when the agent starts."""

    def __init__(self, *there: Taint) -> None:
        self.server, self.clock, self.events = Server(*there), FakeClock(), Events()
        self.own = NodeCache(self.server.node)
        self.own.update(self.server.node)
        self.wanted: Sequence[Taint] = ()
        self.taints = AlertTaints(
            self.server,  # type: ignore[arg-type]
            self.own,
            self.events,
            desired=lambda: self.wanted,
            clock=self.clock,
            random=lambda: 0.0,
        )

    def sync(self, *wanted: Taint) -> list[str]:
        """Return the taints of the node after a sync with these desired ones."""
        self.wanted = wanted
        asyncio.run(self.taints.sync())
        return [it.key.removeprefix(PREFIX) for it in self.server.node.spec.taints or ()]

    def passes(self, minutes: float) -> None:
        asyncio.run(self.clock.advance(minutes * 60))


def test_a_taint_is_added_beside_those_of_others() -> None:
    scene = Scene(THEIRS)
    assert scene.sync(taint("full", "v", "NoExecute")) == ["theirs", "full"]
    (patch,) = scene.server.patches
    assert patch["metadata"] == {"uid": "u", "resourceVersion": "7"}
    (theirs, ours) = patch["spec"]["taints"]  # type: ignore[index]
    assert theirs == to_document(THEIRS)
    assert ours.pop("timeAdded")
    assert ours == to_document(taint("full", "v", "NoExecute"))


def test_an_undesired_taint_is_removed_even_if_an_earlier_process_added_it() -> None:
    scene = Scene(FULL, THEIRS, taint("old"))
    assert scene.sync(FULL) == ["full", "theirs"]
    assert scene.events.messages == [f"AlertAction remove the taint {PREFIX}old:NoSchedule: done"]


def test_nothing_is_asked_while_all_is_as_it_is_wanted() -> None:
    scene = Scene(FULL, THEIRS)
    scene.sync(FULL)
    assert (scene.server.asked, scene.server.patches) == (0, [])


def test_the_same_taint_is_put_on_once_in_ten_minutes_and_later_if_it_is_still_wanted() -> None:
    scene = Scene()
    assert scene.sync(FULL) == ["full"]
    assert scene.sync() == []
    assert scene.sync(FULL, taint("other")) == ["other"]
    with pytest.raises(RetryableError, match="rate limit"):
        asyncio.run(TaintNode(scene.taints).apply(ACTION, ALERT))
    scene.passes(10)
    asyncio.run(TaintNode(scene.taints).apply(ACTION, ALERT))
    assert scene.sync(FULL, taint("other")) == ["other", "full"]


@pytest.mark.parametrize("minutes", [-60, 60])
def test_a_clock_that_is_set_changes_no_turn(minutes: int) -> None:
    scene = Scene()
    assert scene.sync(FULL) == ["full"]
    scene.clock.step(minutes * 60)
    assert scene.sync() == []
    scene.passes(9.9)
    assert scene.sync(FULL) == []
    scene.passes(0.1)
    assert scene.sync(FULL) == ["full"]


def test_ten_are_put_on_in_an_hour() -> None:
    assert len(Scene().sync(*(taint(f"t{number}") for number in range(12)))) == 10


def test_a_value_changes_at_the_same_pace() -> None:
    scene = Scene(taint("full", "old"))
    scene.sync(taint("full", "new"))
    assert scene.server.node.spec.taints == (taint("full", "new"),)
    scene.sync(taint("full", "newer"))
    assert scene.server.node.spec.taints == (taint("full", "new"),)


def test_what_failed_spends_no_turn_and_is_done_again() -> None:
    scene = Scene()
    scene.server.failures = [ConflictError("another version"), DeniedError("no")]
    with pytest.raises(RetryableError):
        scene.sync(FULL)
    with pytest.raises(ActionError, match="denied the request"):
        scene.sync(FULL)
    assert scene.sync(FULL) == ["full"]


async def test_the_service_begins_when_the_node_is_known_and_goes_on_after_failures() -> None:
    scene = Scene(taint("old"))
    scene.own.forget()
    scene.server.failures = [DeniedError("no"), DeniedError("no")]

    task = asyncio.create_task(scene.taints.run())
    await scene.clock.advance(1)
    assert scene.server.asked == 0
    scene.own.update(scene.server.node)
    await scene.clock.advance(4)
    assert len(scene.server.failures) == 1
    await scene.clock.advance(30)
    assert scene.server.node.spec.taints == ()
    task.cancel()
    await asyncio.wait({task})


class NoEvents:
    """An event sink that drops everything."""

    def record(self, subject: Subject, reason: str, message: str, *, warning: bool) -> None:
        pass


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_taint_that_two_alerts_share_goes_with_the_last_of_them(dry_run: bool) -> None:
    scene, firing = Scene(THEIRS), dict[str, Alert]()
    rules = RuleSet(allow_actions=frozenset({ACTION.kind}), dry_run=dry_run)

    async def play() -> list[int]:
        seen, change = [], TaintNode(scene.taints)
        notifier = GuardedRemediation(
            ACTION.kind,
            change,
            lambda _: rules,
            NoEvents(),
            clock=scene.clock,
            is_declarative=True,
        )
        for id_, state in (("a", "firing"), ("b", "firing"), ("a", "resolved"), ("b", "resolved")):
            alert = structs.replace(ALERT, id=AlertId(id_), state=state)
            firing[id_] = alert
            both = [(it, ACTION) for it in firing.values() if it.state == "firing"]
            scene.wanted = desired_taints(both, lambda _: rules)
            await notifier.send(ACTION, alert)
            seen.append(len(scene.server.node.spec.taints or ()))
        return seen

    assert await play() == ([1, 1, 1, 1] if dry_run else [2, 2, 2, 1])


@pytest.mark.servers
async def test_a_node_is_tainted_by_who_may_and_a_kubelets_user_may_not(
    each_server: ApiServer,
) -> None:
    name = NODES[21]
    path = f"/api/v1/nodes/{name}"
    each_server.client.create(
        "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    )

    def keys() -> list[str]:
        node = each_server.client.get(path)[1]
        return [it["key"] for it in node["spec"].get("taints", []) if it["key"].startswith(PREFIX)]

    async def scene(access: ServerAccess) -> None:
        async with ApiClient(kubeconfig_config(access.kubeconfig)) as client:
            api, clock, wanted = HttpNodeApi(client), FakeClock(), [FULL]
            own = NodeCache(Node())
            own.update(await api.get_node(name))
            taints = AlertTaints(api, own, Events(), desired=lambda: wanted, clock=clock)
            await TaintNode(taints).apply(ACTION, ALERT)
            assert keys() == [f"{PREFIX}full"]
            wanted.clear()
            await TaintNode(taints).revert(ACTION, ALERT)
            assert keys() == []

    try:
        await scene(each_server.access)
        if isinstance(each_server, RealServer):
            with pytest.raises(ActionError, match="denied the request") as raised:
                await scene(each_server.node_access(name))
            assert type(raised.value) is ActionError
    finally:
        each_server.client.delete(path)
