"""A node, its API server, its users, what goes wrong between them, and a witness.

The manager is as it ships, over the client that ships, and its pods come by the reflector that
ships; all of them through a proxy. Users and the witness go straight to the server.
"""

import asyncio
import itertools
import json
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from podstatus.base.backoff import Backoff
from podstatus.base.system_clock import SystemClock
from podstatus.client.api_client import ApiClient
from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.client.informer.object_store import Added, ObjectChange, Updated
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.reflector_timing import ReflectorPolicy
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.resources import NAMESPACES, PODS
from podstatus.client.typed.pods import HttpPodApi, pod_reflector
from podstatus.kube.conditions import find_condition
from podstatus.kube.encoding.codec import decode
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.status.decide.normalize_and_compare import (
    is_pod_status_by_kubelet_equal,
    normalize_status,
)
from podstatus.status.manager import StatusManager
from podstatus.status.policy import ParallelSyncOptions, SyncPolicy
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.servers.access import ServerAccess
from tests.servers.clients.busy_node import FOREIGN, BusyNode, Outline, Users, mark_of, outline
from tests.servers.clients.faulty_proxy import FaultyProxy
from tests.support.loops import until
from tests.support.plain_access import PlainAccess

PODS_OF_NODE = 48
REST_SECONDS = 80.0
"""After which it will not become right any more. A pod that failed waits for a few seconds, and a
busy machine takes its time."""
_GATES = FeatureGates()
_numbers = itertools.count()


class UnsteadyClock(SystemClock):
    """The clock of this machine, which somebody sets."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> int:
        return super().now() + round(self.ahead * 1e9)


class Witness:
    """Follows the pods by itself and objects to what must not be seen."""

    def __init__(self, client: ApiClient, node_name: str, node: BusyNode) -> None:
        self._node = node
        self.objections: list[str] = []
        self.overtaken: list[str] = []
        """The pods that were seen with an older status after a newer one."""
        self.mixed: dict[str, str] = {}
        """The pods that were seen with a status that was never set, and what it was."""
        self.seen = 0
        self._marks: dict[str, int] = {}
        self.reflector = Reflector(
            client,
            ObjectSelection(PODS, field_selector=f"spec.nodeName={node_name}"),
            Pod,
            self._see,
            policy=ReflectorPolicy(backoff=Backoff(initial_seconds=0.05, max_seconds=0.5)),
        )

    def _see(self, change: ObjectChange[Pod]) -> None:
        match change:
            case Updated(old, new):
                if is_terminal_phase(old.status.phase) and not is_terminal_phase(new.status.phase):
                    self._object(new, "came back to life")
                self._see_status(new)
            case Added(new):
                self._see_status(new)

    def _see_status(self, pod: Pod) -> None:
        mark = mark_of(pod.status)
        if mark == 0:
            return
        self.seen += 1
        if mark < self._marks.get(pod.uid, 0):
            self.overtaken.append(pod.name)
        self._marks[pod.uid] = mark
        said, shown = self._node.said.get((pod.uid, mark)), outline(normalized(pod))
        if shown != said:
            self._see_mixture(pod, shown)

    def _see_mixture(self, pod: Pod, shown: Outline) -> None:
        """Parts of two statuses: the containers are one list, which a patch replaces as a whole."""
        said = [parts for (uid, _), parts in self._node.said.items() if uid == pod.uid]
        if shown[0] not in {it[0] for it in said} or shown[1:] not in {it[1:] for it in said}:
            self._object(pod, f"{shown} has a part that was never set")
        self.mixed[pod.name] = f"at {mark_of(pod.status)}: {shown} was never set"

    def _object(self, pod: Pod, what: str) -> None:
        self.objections.append(f"{pod.name} at {mark_of(pod.status)}: {what}")


class Scene:
    """Everything together; made by `playing`."""

    def __init__(
        self,
        *,
        agent: ApiClient,
        straight: ApiClient,
        proxy: FaultyProxy,
        users: Users,
        policy: SyncPolicy,
        seed: int,
        users_work: bool,
        gives_up: bool,
    ) -> None:
        self._agent = agent
        self._gives_up = gives_up
        self._users_work = users_work
        self._straight = straight
        self._node_name = users.node
        self.proxy = proxy
        self.users = users
        self.policy = policy
        self.sending = policy.parallel or ParallelSyncOptions()
        self.clock = UnsteadyClock()
        self.began = time.monotonic()
        self._jumps = 0
        self._cancelled = 0
        self._directory = PodManager()
        safety = FakeDeletionSafety()
        self.manager = StatusManager(
            HttpPodApi(agent), self._directory, safety, clock=self.clock, policy=policy
        )
        self.node = BusyNode(self.manager, self._directory, safety, random.Random(seed))
        self.witness = Witness(straight, self._node_name, self.node)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let everything happen."""
        async with asyncio.TaskGroup() as tasks:
            shown = pod_reflector(self._agent, self._node_name, self._directory)
            following = [
                tasks.create_task(self.witness.reflector.run()),
                tasks.create_task(shown.run()),
            ]
            await self.witness.reflector.wait_synced()
            await shown.wait_synced()
            self.syncing = tasks.create_task(self.manager.run())
            following.append(tasks.create_task(self.node.live()))
            self._tasks = tasks
            self._using = tasks.create_task(self._use())
            yield
            self.manager.stop(drain=0)
            for task in following:
                task.cancel()

    async def _use(self) -> None:
        while self._users_work and not self.node.is_calm:
            await self.users.step()
            await asyncio.sleep(0.02)

    async def restart(self) -> None:
        """Cancel the sync in whatever it is doing, and run it again when more has happened."""
        self._cancelled += self.proxy.most_under_way
        self.syncing.cancel()
        await asyncio.wait({self.syncing})
        await self.go_on(50)
        self.syncing = self._tasks.create_task(self.manager.run())

    async def go_on(self, statuses: int = 100) -> None:
        """Wait until so many statuses more were said."""
        goal = self.node.versions + statuses
        await until(lambda: self.node.versions >= goal)

    async def arrive(self, statuses: int = 100) -> None:
        """Wait until so many statuses more were seen at the server."""
        goal = self.witness.seen + statuses
        async with asyncio.timeout(REST_SECONDS):
            await until(lambda: self.witness.seen >= goal)

    async def come_to_rest(self, seconds: float = REST_SECONDS) -> None:
        """Wait until the server has what the node says."""
        await self._say_last_words()
        try:
            async with asyncio.timeout(seconds):
                await until(lambda: not self._wrongs(self.witness.reflector.objects()))
        except TimeoutError:
            wrongs = self._wrongs(self.witness.reflector.objects())
            raise AssertionError(f"{len(wrongs)} wrong: {wrongs[:5]}") from None
        wrongs = self._wrongs(await self._listed())
        assert not wrongs, wrongs[:5]

    async def _say_last_words(self) -> None:
        """Let something happen to every pod twice, the second time while the first is sent."""
        if self.node.is_calm:
            return
        self.node.is_calm = True
        await self._using
        self.node.change_all()
        async with asyncio.timeout(REST_SECONDS):
            await until(lambda: self.proxy.is_asked)
        self.node.change_all()

    def set_clock(self, ahead: float) -> None:
        """Let the node's clock be wrong by so many seconds."""
        self.clock.ahead = ahead
        self._jumps += 1

    def check(self) -> None:
        """Object to what was seen, and to requests that nobody needed."""
        assert not self.witness.objections, self.witness.objections[:5]
        late = self._may_arrive_late()
        assert set(self.witness.overtaken) <= late
        # A late patch may also change a part that the newer one left as it was.
        mixed = {name: what for name, what in self.witness.mixed.items() if name not in late}
        assert not mixed, mixed
        assert self.proxy.most_under_way <= self.sending.in_flight
        asked = self.proxy.asked
        failed = sum(one.failed for one in asked)
        reconciles = int((time.monotonic() - self.began) / self.policy.full_sync_period)
        # A status is patched once, a pod deleted once. After a failure it is read first; so it
        # is when its last answer seems old. A reconcile finds something to do once at most. What
        # was cancelled is done once more.
        needed = self.node.versions + self.node.ends
        needed += failed + (reconciles + self._jumps) * PODS_OF_NODE + 2 * self._cancelled
        assert len(asked) - failed <= needed

    def _may_arrive_late(self) -> set[str]:
        """The pods with patches that a client gave up and the server had: decision 0016."""
        if not self._gives_up:
            return set()
        given_up = [one for one in self.proxy.asked if one.method == "PATCH" and not one.code]
        return {one.name for one in given_up}

    async def _listed(self) -> list[Pod]:
        page = await self._straight.list(PODS, field_selector=f"spec.nodeName={self._node_name}")
        items = msgspec.json.decode(page)["items"]
        return [decode(msgspec.json.encode(item), Pod) for item in items]

    def _wrongs(self, pods: list[Pod]) -> list[str]:
        """What is not as it should be."""
        return [f"{pod.name}: {wrong}" for pod in pods for wrong in self._wrongs_of(pod)]

    def _wrongs_of(self, pod: Pod) -> list[str]:
        wrongs = []
        if pod.metadata.deletion_timestamp is not None or pod.uid in self.users.sent_away:
            asked = [(a.method, a.code) for a in self.proxy.asked if a.name == pod.name]
            wrongs.append(f"asked to go, and still there; last asked: {asked[-6:]}")
        cached = self.manager.pod_status(pod.uid)
        shown = normalized(pod)
        if cached is None and mark_of(shown):
            wrongs.append("the node has forgotten it")
        if cached is not None and not is_pod_status_by_kubelet_equal(shown, cached, _GATES):
            wrongs.append(f"the server has {mark_of(shown)}, the node {mark_of(cached)}")
        foreign = find_condition(pod.status.conditions, FOREIGN)
        said = self.users.wrote.get(pod.uid)
        if said is not None and (foreign is None or foreign.message != said):
            wrongs.append(f"somebody else's condition is lost: {foreign}, not {said}")
        return wrongs


def normalized(pod: Pod) -> PodStatus:
    return normalize_status(pod, pod.status)


@asynccontextmanager
async def playing(
    server: ServerAccess,
    *,
    seed: int,
    policy: SyncPolicy,
    timing: Timeouts | None = None,
    pods: int = PODS_OF_NODE,
    users_work: bool = True,
    gives_up: bool = False,
) -> AsyncIterator[Scene]:
    """A busy node that runs, in a namespace of its own."""
    namespace = f"faults-{os.getpid()}-{next(_numbers)}"
    proxy = FaultyProxy(server, random.Random(seed))
    async with (
        proxy.running(),
        ApiClient(proxy.access, timeouts=timing or Timeouts()) as agent,
        ApiClient(PlainAccess.of(server), timeouts=Timeouts(total_seconds=60)) as straight,
    ):
        body = json.dumps({"metadata": {"name": namespace}}).encode()
        await straight.create(NAMESPACES, body)
        names = [f"pod-{index}" for index in range(pods)]
        users = Users(
            straight, namespace=namespace, node=f"node-of-{namespace}", names=names, seed=seed
        )
        await users.make_all()
        scene = Scene(
            agent=agent,
            straight=straight,
            proxy=proxy,
            users=users,
            policy=policy,
            seed=seed,
            users_work=users_work,
            gives_up=gives_up,
        )
        async with scene.running():
            yield scene
