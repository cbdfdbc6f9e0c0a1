"""A node, random events, and the invariants that must hold."""

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import CONFIG_SOURCE, Pod, PodUID, is_terminal_phase
from podstatus.kube.objects.pod_status import ContainerStatus
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.workers.dependencies import WorkerPolicy
from podstatus.workers.lifecycle.state_machine import Eviction, PodWorkerState
from tests.support.node_in_memory import NAMESPACE, NodeInMemory
from tests.support.world_in_memory import brief

AT_REST = 150
"""Seconds after which all that went wrong has been tried again, with the longest wait."""
GONE_BY = 120
"""Seconds after which what is deleted has gone: grace, ends that take their time, retries."""


class NodeModel:
    """Applies events to a node, and checks its invariants."""

    def __init__(self) -> None:
        # Rarely: hints report changes at once, and this test is about order, not time.
        policy = WorkerPolicy(housekeeping=5.0)
        self.node = NodeInMemory(policy=policy, relist=7.0, rounds=30)
        self.node.api.before_delete = self._check_may_go
        self.node.runtime.before_start = self._check_may_start
        self.node.runtime.before_remove = self._check_may_remove
        self._pods: dict[str, Pod] = {}
        """Those that were created last, by name."""
        self._created = 0
        self._ended: dict[str, str] = {}
        """The phase of those objects that the API server shows as ended."""
        self._tell_watch, self.node.api.on_change = self.node.api.on_change, self._watch
        self.wrong: list[str] = []
        """What must never happen, and did."""

    # Events of pods

    async def create(self, pod: Pod) -> None:
        """A user creates a pod, unless the name exists."""
        if self.node.pod(pod.name) is None:
            self._created += 1
            uid = f"{pod.name}-{self._created}"
            pod = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=uid))
            self._pods[pod.name] = pod
            self.node.create(pod)

    async def come_back(self, name: str) -> None:
        """A pod that was removed returns with its UID."""
        if self.node.pod(name) is None and name in self._pods:
            self.node.create(self._pods[name])

    async def delete(self, name: str, grace: int) -> None:
        """A user deletes a pod."""
        if self.node.pod(name) is not None:
            self.node.delete(name, grace=grace)

    async def force_delete(self, name: str) -> None:
        """A pod disappears from the API server."""
        self.node.force_delete(name)

    async def change(self, name: str, image: str) -> None:
        """A user changes the image of a pod."""
        if (pod := self.node.pod(name)) is not None and pod.spec.containers is not None:
            first, *others = pod.spec.containers
            containers = (structs.replace(first, image=image), *others)
            spec = structs.replace(pod.spec, containers=containers)
            self.node.api.put(structs.replace(pod, spec=spec))

    async def meddle(self, name: str, patch: Mapping[str, Any]) -> None:
        """Another client writes to the status of a pod."""
        self.node.api.patch(NAMESPACE, name, {"status": dict(patch)})

    async def evict(self, name: str) -> None:
        """The node evicts a pod."""
        if (pod := self.node.pod(name)) is not None:
            self.node.agent.workers.kill(pod.uid, Eviction(reason="Evicted", message="no room"))

    async def crash(self, name: str) -> None:
        """The containers of a pod die."""
        if (pod := self.node.pod(name)) is not None:
            await self.node.runtime.crash(pod.uid)

    async def write_manifest(self, pod: Pod | None) -> None:
        """The manifest folder has this pod, or none."""
        if pod is not None:
            annotations = {**(pod.metadata.annotations or {}), CONFIG_SOURCE: "file"}
            metadata = structs.replace(pod.metadata, annotations=annotations)
            pod = structs.replace(pod, metadata=metadata)
        self.node.write_manifests(*(() if pod is None else (pod,)))

    # Events of the environment

    async def lose_sight(self) -> None:
        """The API server briefly reports no pods."""
        if not self.node.api.is_away:
            self.node.agent.mux.deliver("api", [])

    async def see_again(self) -> None:
        """The API source delivers a full list."""
        self.node.deliver("api")

    async def server(self, *, is_away: bool) -> None:
        """The API server becomes unavailable or available."""
        if is_away:
            self.node.server_is_away()
        elif self.node.api.is_away:
            self.node.server_is_back()

    async def runtime(self, *, is_down: bool, lies: bool) -> None:
        """The runtime has a fault, or none."""
        self.node.runtime.is_down = is_down
        self.node.runtime.lies = lies

    async def restart(self, after: float) -> None:
        """The agent crashes and is restarted."""
        await self.node.restart(after=after)

    async def passes(self, seconds: float) -> None:
        """Time passes."""
        await self.node.passes(seconds)

    # Invariants

    async def check(self) -> None:
        """No invariant was violated."""
        assert not self.wrong, self.wrong
        assert not self.node.agent.broken, self.node.agent.broken

    def _watch(self, changed: Pod | None, removed: Pod | None) -> None:
        """A terminal phase stays."""
        if removed is not None:
            self._ended.pop(removed.uid, None)
        if changed is not None:
            before = self._ended.get(changed.uid, changed.status.phase)
            if before != changed.status.phase:
                self.wrong.append(f"{changed.uid} was {before} and is {changed.status.phase}")
            if is_terminal_phase(changed.status.phase):
                self._check_has_ended(changed)
                self._ended[changed.uid] = changed.status.phase
        self._tell_watch(changed, removed)

    def _check_has_ended(self, pod: Pod) -> None:
        running = self.node.runtime.running_now(pod.uid)
        if running and pod.uid not in self._ended:
            self.wrong.append(f"{pod.uid} is shown as {pod.status.phase} while it runs {running}")

    def _check_may_go(self, pod: Pod) -> None:
        running = self.node.runtime.running_now(pod.uid)
        if running:
            self.wrong.append(f"{pod.uid} is deleted while it runs {running}")

    def _check_may_start(self, pod: Pod, container: Container) -> None:
        life = self.node.agent.lives.get(pod.uid)
        if life is None or life.state is not PodWorkerState.SYNC:
            self.wrong.append(f"{container.name} of {pod.uid} is started though it is to end")
        if pod.uid in self._ended:
            self.wrong.append(f"{container.name} of {pod.uid} is started after its end")

    def _check_may_remove(self, uid: PodUID) -> None:
        life = self.node.agent.lives.get(uid)
        if self.node.runtime.running_now(uid):
            self.wrong.append(f"{uid} is removed while it runs")
        shown = next((pod for pod in self.node.api.pods() if pod.uid == uid), None)
        if shown is None or life is None or life.source_removed:
            return
        for status in _containers_of(shown):
            newest = self.node.runtime.newest(uid, status.name)
            if newest is not None and newest.exit_code not in _exit_codes(status):
                self.wrong.append(f"{uid} was removed without a report of the exit of {newest}")

    # Liveness

    async def heal(self) -> None:
        """All faults end, and enough time passes."""
        await self.runtime(is_down=False, lies=False)
        await self.server(is_away=False)
        await self.see_again()
        await self.passes(AT_REST)
        await self.check()

    async def check_at_rest(self) -> None:
        """Every status matches its pod, and nothing else exists."""
        wanted = {pod.uid for pod in (*self.node.api.pods(), *self.node.manifests)}
        listed = {pod.uid: pod for pod in await SimulatedRuntime.list_pods(self.node.runtime)}
        assert listed.keys() <= wanted, "the runtime has pods that are not desired"
        for pod in self.node.api.pods():
            await self._check_shown(pod)

    async def _check_shown(self, pod: Pod) -> None:
        life = self.node.agent.lives.get(pod.uid)
        assert life is not None, f"{pod.uid} has no worker"
        is_over = is_terminal_phase(pod.status.phase)
        assert life.state is (PodWorkerState.FINISHED if is_over else PodWorkerState.SYNC), (
            life,
            brief(pod),
        )
        if pod.metadata.deletion_timestamp is not None:
            raise AssertionError(f"{pod.uid} is deleted and has not gone: {life}")
        for status in _containers_of(pod):
            newest = self.node.runtime.newest(pod.uid, status.name)
            runs = newest is not None and newest.state is ContainerRunState.RUNNING
            assert (status.state.running is not None) is runs, (status, newest)
            if newest is not None and not runs:
                assert newest.exit_code in _exit_codes(status), (status, newest)

    async def take_all_away(self) -> None:
        """All pods are deleted, and disappear."""
        for pod in self.node.api.pods():
            await self.delete(pod.name, 10)
        await self.write_manifest(None)
        await self.passes(GONE_BY)
        await self.check()
        left = [brief(pod) for pod in self.node.api.pods()]
        assert not left, f"the API server still has {left}"
        listed = await SimulatedRuntime.list_pods(self.node.runtime)
        assert not listed, f"the runtime still has {listed}"
        assert not self.node.agent.lives.all(), self.node.agent.lives.all()
        assert not self.node.agent.statuses.entries(), self.node.agent.statuses.entries()

    async def check_no_task_waits(self) -> None:
        """No task is left when the agent has stopped."""
        await self.node.stop()
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, others


def _containers_of(pod: Pod) -> tuple[ContainerStatus, ...]:
    status = pod.status
    return (*(status.init_container_statuses or ()), *(status.container_statuses or ()))


def _exit_codes(status: ContainerStatus) -> list[int]:
    """IDs in the status of a container: its own, or that of its last attempt while it waits."""
    states = [status.state, status.last_state]
    return [state.terminated.exit_code for state in states if state and state.terminated]
