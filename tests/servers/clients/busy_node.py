"""A node on which something happens all the time, and users who do things to its pods.

Every status has a mark, the restart count of its first container, that grows from one to the
next: so whoever sees a status can tell which one it is, and whether it is older than another.
"""

import asyncio
import json
import random
from collections import Counter
from typing import Any

import msgspec

from podstatus.client.api_client import ApiClient
from podstatus.client.rest.resources import PODS
from podstatus.kube.api_errors import ApiError, ConflictError, GoneError, UnavailableError
from podstatus.kube.conditions import find_condition
from podstatus.kube.encoding.codec import decode
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager
from podstatus.testing.builders import ended, make_status, running
from podstatus.testing.fakes import FakeDeletionSafety

FOREIGN = "example.com/checked"
"""A condition that somebody else writes."""
PACE = 0.02
"""Seconds between two steps."""
_MOST_AT_ONCE = 8
"""Pods to which something happens in one step."""
_HOUSEKEEPING = 10
"""Steps between two times that the node forgets what is gone."""

Outline = tuple[Any, ...]


def mark_of(status: PodStatus) -> int:
    """Which of a pod's statuses this is; 0 if the node has said nothing yet."""
    return next((c.restart_count for c in status.container_statuses or ()), 0)


def outline(status: PodStatus) -> Outline:
    """What the node alone says, without what may be held back (the phase) or stamped (times)."""
    ready = find_condition(status.conditions, "Ready")
    containers = [
        (c.name, c.ready, c.started, c.restart_count, c.state.running, c.state.terminated)
        for c in status.container_statuses or ()
    ]
    return (ready and ready.status, *containers)


class Life(msgspec.Struct):
    """What the node knows of a pod."""

    mark: int = 0
    side_ended: bool = False
    is_ending: bool = False
    is_over: bool = False


class BusyNode:
    """Says new statuses of some of its pods with every step."""

    def __init__(
        self,
        manager: StatusManager,
        directory: PodManager,
        safety: FakeDeletionSafety,
        chance: random.Random,
    ) -> None:
        self._manager = manager
        self._directory = directory
        self._safety = safety
        self._chance = chance
        self._lives: dict[str, Life] = {}
        self.said: dict[tuple[str, int], Outline] = {}
        """By UID and mark."""
        self.versions = 0
        self.ends = 0
        self.is_calm = False
        """Nothing happens any more but the end of pods that have begun to end, or are to go."""

    async def live(self) -> None:
        """Let things happen until cancelled."""
        steps = 0
        while True:
            self.step()
            steps += 1
            if steps % _HOUSEKEEPING == 0:
                self._manager.remove_orphaned_statuses(pod.uid for pod in self._directory.pods())
            await asyncio.sleep(PACE)

    def step(self) -> None:
        """Let something happen to some pods."""
        pods = self._directory.pods()
        if self.is_calm:
            pods = [pod for pod in pods if self._is_to_go(pod)]
        some = self._chance.randint(1, _MOST_AT_ONCE)
        for pod in self._chance.sample(pods, min(some, len(pods))):
            self.change(pod)

    def change_all(self) -> None:
        """Let something happen to every pod."""
        for pod in self._directory.pods():
            self.change(pod)

    def change(self, pod: Pod) -> None:
        """Let something happen to this pod."""
        life = self._lives.setdefault(pod.uid, Life())
        if life.is_over:
            return
        life.mark += 1
        if life.is_ending:
            life.is_over = True
            self._end(pod, life)
        elif pod.metadata.deletion_timestamp is not None or self._ends_by_itself(pod):
            life.is_ending = True
            # It may still run something, so that its phase is held back.
            self._say(pod, "Succeeded", _ended("app", life.mark), ended("side"), ready=False)
        else:
            self._go_on(pod, life)

    def _is_to_go(self, pod: Pod) -> bool:
        life = self._lives.get(pod.uid)
        return pod.metadata.deletion_timestamp is not None or (life is not None and life.is_ending)

    def _ends_by_itself(self, pod: Pod) -> bool:
        return pod.spec.restart_policy == "Never" and self._chance.random() < 0.01

    def _end(self, pod: Pod, life: Life) -> None:
        self._safety.table[pod.uid] = False
        self._say(pod, "Succeeded", _ended("app", life.mark), ended("side"), ready=False)
        self._manager.terminate_pod(pod)
        self.versions += 1
        self.ends += 1

    def _go_on(self, pod: Pod, life: Life) -> None:
        self._safety.table[pod.uid] = True
        if pod.spec.restart_policy == "Always" or not life.side_ended:
            life.side_ended = self._chance.random() < 0.2
        ready = self._chance.random() < 0.5
        app = msgspec.structs.replace(running("app", ready=ready), restart_count=life.mark)
        side = ended("side") if life.side_ended else running("side")
        self._say(pod, "Running", app, side, ready=ready)

    def _say(self, pod: Pod, phase: str, *containers: ContainerStatus, ready: bool) -> None:
        conditions = {"Ready": str(ready), "ContainersReady": str(ready)}
        status = make_status(phase, *containers, **conditions)
        status = msgspec.structs.replace(status, qos_class="BestEffort")
        cached, changed = self._manager.set_pod_status(pod, status)
        assert changed, "every status is another one"
        self.said[pod.uid, mark_of(cached)] = outline(cached)
        self.versions += 1


def _ended(name: str, mark: int) -> ContainerStatus:
    return msgspec.structs.replace(ended(name), restart_count=mark)


class Users:
    """Make pods, ask for their deletion, and write conditions of their own into them."""

    def __init__(
        self, client: ApiClient, *, namespace: str, node: str, names: list[str], seed: int
    ) -> None:
        self._client = client
        self._namespace = namespace
        self.node = node
        self._names = names
        self._chance = random.Random(f"users {seed}")
        self._there: dict[str, str] = {}
        """UIDs by name, of those that were not asked to go."""
        self._number = 0
        self.made: Counter[str] = Counter()
        """How often, by name."""
        self.wrote: dict[str, str] = {}
        """What the foreign condition says, by UID, as far as it is certain."""
        self.sent_away: set[str] = set()
        """UIDs."""

    async def make_all(self) -> None:
        """Make every pod."""
        await asyncio.gather(*(self._make(name) for name in self._names))

    async def step(self) -> None:
        """Do something to a pod."""
        name = self._chance.choice(self._names)
        uid = self._there.get(name)
        try:
            if uid is None:
                await self._make(name)
            elif self._chance.random() < 0.2:
                await self._send_away(name, uid)
            else:
                await self._write(name, uid)
        except GoneError:
            self._there.pop(name, None)
        except (ConflictError, UnavailableError):
            return  # the old one has not gone yet; or nobody can say what became of it

    async def _make(self, name: str) -> None:
        containers = [{"name": c, "image": f"{c}:1"} for c in ("app", "side")]
        policy = "Never" if int(name.rpartition("-")[2]) % 2 else "Always"
        spec = {"nodeName": self.node, "containers": containers, "restartPolicy": policy}
        body = json.dumps({"metadata": {"name": name}, "spec": spec}).encode()
        made = decode(await self._client.create(PODS, body, namespace=self._namespace), Pod)
        self._there[name] = made.uid
        self.made[name] += 1

    async def _send_away(self, name: str, uid: str) -> None:
        self._there.pop(name)
        options = json.dumps({"preconditions": {"uid": uid}}).encode()
        await self._client.delete(PODS, name, namespace=self._namespace, options=options)
        self.sent_away.add(uid)

    async def _write(self, name: str, uid: str) -> None:
        self._number += 1
        said = str(self._number)
        condition = {"type": FOREIGN, "status": "True", "message": said}
        patch = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
        self.wrote.pop(uid, None)
        try:
            await self._client.patch(
                PODS,
                name,
                json.dumps(patch).encode(),
                namespace=self._namespace,
                subresource="status",
            )
        except ApiError:
            self._there.pop(name)  # whatever it says: left alone from now on
            raise
        self.wrote[uid] = said
