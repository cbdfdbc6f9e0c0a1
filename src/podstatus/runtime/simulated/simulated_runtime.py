"""The simulated runtime: the runtime port over scripts instead of containers."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from random import Random, SystemRandom

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.usage import Usage
from podstatus.runtime.cpu_and_memory_limits import pod_limits
from podstatus.runtime.port import (
    CannotResizeError,
    CannotStartError,
    ProbeResult,
    RuntimeDownError,
    RuntimePod,
)
from podstatus.runtime.simulated.model.addresses import POD_CIDR, AddressPool
from podstatus.runtime.simulated.model.container_start import new_attempt, start_failure
from podstatus.runtime.simulated.model.container_timeline import (
    SimulatedAttempt,
    find_exit,
    has_ended,
)
from podstatus.runtime.simulated.model.pod_record import (
    SimulatedPodRecord,
    SimulatedSandbox,
    container_usage,
    pod_usage,
)
from podstatus.runtime.simulated.model.resize import apply_resize, resize_duration
from podstatus.runtime.simulated.model.script import START_ERROR, Script, ScriptError, script_for
from podstatus.runtime.simulated.state import SimulationState
from podstatus.runtime.simulated.store import SimulatedPodStore

_MAX_GRACE_SECONDS = 1e9
"""About 30 years: an "infinite" grace period ends, too."""


class SimulatedRuntime:
    """A runtime whose containers follow the scripts in their pods' annotations.

    With a folder, records outlive the agent and containers keep running in the meantime; the
    constructor raises RuntimeDownError if the folder cannot be used. Not thread-safe: for one event
    loop.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        random: Random | None = None,
        folder: Path | None = None,
        network: str = POD_CIDR,
    ) -> None:
        self._clock = clock
        self._random = random or SystemRandom()
        self._addresses = AddressPool(network)
        self._state = SimulationState(clock, SimulatedPodStore(folder), self._addresses)

    @property
    def name(self) -> str:
        """Scheme of container IDs, also shown on the Node."""
        return "simulated"

    @property
    def version(self) -> str:
        """Version of the script vocabulary."""
        return "1.0"

    async def start_pod(self, pod: Pod) -> None:
        """Create a sandbox, with an IP unless the pod uses the host network."""
        record = self._state.record(pod.uid) or SimulatedPodRecord(
            uid=pod.uid, namespace=pod.namespace, name=pod.name
        )
        if record.sandbox is not None:
            return
        newest = record.sandboxes[0].attempt if record.sandboxes else -1
        address = self._allocate_address(pod)
        sandbox = SimulatedSandbox(id=self._new_id(), attempt=newest + 1, ip=address)
        try:
            self._state.put(record.with_sandbox(sandbox, pod_limits(pod)))
        except RuntimeDownError:
            if address is not None:
                self._addresses.release(address)
            raise

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        """Start the attempt that the script describes and return its ID.

        An existing attempt with the same restart count is returned as it is.
        """
        self._require_sandbox(pod)
        attempt = self._find_attempt(pod, container, restart_count)
        if attempt is None:
            script = _script(pod, container, restart_count)
            await self._sleep(pod.uid, script.start)
            attempt = self._create_attempt(pod, container, script, restart_count)
        if attempt.start_error:
            raise start_failure(container, attempt.script)
        return attempt.id

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        """Resize the pod and these attempts, taking as long as their scripts say."""
        record = self._require_record(pod)
        duration = resize_duration(record, pod, containers, self._state.now())
        await self._sleep(pod.uid, duration)
        record = self._require_record(pod)
        new = apply_resize(record, pod, containers, self._state.now())
        if new != record:
            self._state.put(new)

    def _require_record(self, pod: Pod) -> SimulatedPodRecord:
        record = self._state.record(pod.uid)
        if record is None or record.sandbox is None:
            raise CannotResizeError(f"pod {pod.namespace}/{pod.name} has no ready sandbox")
        return record

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Stop a container, kill it after the grace period, return when it has ended.

        Once requested, the stop takes place even if this call is cancelled.
        """
        now = self._state.now()
        grace = min(max(0.0, grace_seconds), _MAX_GRACE_SECONDS)
        self._request_stop(uid, container_id, stop_at=now, kill_at=now + round(grace * 1e9))
        await self._wait_ended(uid, container_id)

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Remove an ended attempt; a running one stays."""
        record = self._state.record(uid)
        attempt = record.find(container_id) if record is not None else None
        if record is not None and attempt is not None and has_ended(attempt, self._state.now()):
            self._state.put(record.without_attempt(container_id))

    async def stop_pod(self, uid: PodUID) -> None:
        record = self._state.record(uid)
        if record is None:
            return
        now = self._state.now()
        for attempt in record.running_attempts(now):
            self._request_stop(uid, attempt.id, stop_at=None, kill_at=now)
        for attempt in record.attempts:
            await self._wait_ended(uid, attempt.id)
        record = self._state.record(uid)
        if record is not None and record.sandbox is not None:
            self._state.put(record.with_stopped_sandbox())

    async def remove_pod(self, uid: PodUID) -> None:
        """Stop the pod if necessary and remove all its records."""
        await self.stop_pod(uid)
        self._state.remove(uid)

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """Return all pods, or `uid` only; the same objects while nothing changes."""
        uids = [record.uid for record in self._state.records()] if uid is None else [uid]
        listed = (self._state.runtime_pod(uid) for uid in uids)
        return [pod for pod in listed if pod is not None]

    def changes(self) -> AsyncIterator[PodUID]:
        """Yield pods whose containers started, ended or were removed."""
        return self._state.changes()

    def probe_results(self) -> AsyncIterator[ProbeResult]:
        """Yield probe results: once per container at first, then on each change."""
        return self._state.probe_results()

    async def run_hook(self, uid: PodUID, container_id: str, hook: str) -> bool:
        """Wait as long as the script says; False if the hook or its container failed meanwhile."""
        attempt = self._find_running(uid, container_id)
        if attempt is None:
            return False
        script, is_first = attempt.script, hook == "postStart"
        await self._sleep(uid, script.post_start if is_first else script.pre_stop)
        code = script.post_start_exit if is_first else script.pre_stop_exit
        return code == 0 and self._find_running(uid, container_id) is not None

    async def usage(self) -> Mapping[PodUID, Usage]:
        """Return the usage of each pod, from its scripts or its requests."""
        now = self._state.now()
        return {record.uid: pod_usage(record, now) for record in self._state.records()}

    def container_usage(self) -> Mapping[PodUID, Mapping[str, Usage]]:
        now = self._state.now()
        return {record.uid: container_usage(record, now) for record in self._state.records()}

    async def _sleep(self, uid: PodUID, nanos: int | None) -> None:
        """Sleep for `nanos`; None: forever."""
        if nanos is not None:
            await self._clock.wait(nanos / 1e9)
            return
        with self._state.wakeup(uid) as wakeup:
            while True:
                await wakeup.wait()

    def _create_attempt(
        self, pod: Pod, container: Container, script: Script, restart_count: int
    ) -> SimulatedAttempt:
        if script.fail and script.fail != START_ERROR:
            raise start_failure(container, script)
        record, sandbox = self._require_sandbox(pod)
        attempt = new_attempt(
            container,
            script,
            sandbox,
            id=f"{self.name}://{self._new_id()}",
            restart_count=restart_count,
            began=self._state.now(),
        )
        self._state.put(record.with_attempt(attempt))
        return attempt

    def _find_running(self, uid: PodUID, container_id: str) -> SimulatedAttempt | None:
        record = self._state.record(uid)
        attempt = record.find(container_id) if record is not None else None
        return None if attempt is None or has_ended(attempt, self._state.now()) else attempt

    def _request_stop(
        self, uid: PodUID, container_id: str, *, stop_at: int | None, kill_at: int
    ) -> None:
        """Record when the container was asked to stop, and when it will be killed."""
        record = self._state.record(uid)
        attempt = record.find(container_id) if record is not None else None
        if record is None or attempt is None or has_ended(attempt, self._state.now()):
            return
        if attempt.stop_at is not None:
            stop_at = attempt.stop_at
        if attempt.kill_at is not None:
            kill_at = min(attempt.kill_at, kill_at)
        self._state.put(
            record.with_replaced_attempt(structs.replace(attempt, stop_at=stop_at, kill_at=kill_at))
        )

    async def _wait_ended(self, uid: PodUID, container_id: str) -> None:
        with self._state.wakeup(uid) as wakeup:
            while True:
                record = self._state.record(uid)
                attempt = record.find(container_id) if record is not None else None
                if attempt is None or has_ended(attempt, self._state.now()):
                    return
                end = find_exit(attempt)
                await wakeup.wait(end.at if end is not None else None)

    def _require_sandbox(self, pod: Pod) -> tuple[SimulatedPodRecord, SimulatedSandbox]:
        record = self._state.record(pod.uid)
        sandbox = record.sandbox if record is not None else None
        if record is None or sandbox is None:
            raise CannotStartError(
                "CreateContainerError",
                f"pod {pod.namespace}/{pod.name} has no ready sandbox; start the pod first",
            )
        return record, sandbox

    def _find_attempt(
        self, pod: Pod, container: Container, restart_count: int
    ) -> SimulatedAttempt | None:
        record = self._state.record(pod.uid)
        return record.find_attempt(container.name, restart_count) if record is not None else None

    def _allocate_address(self, pod: Pod) -> str | None:
        if pod.spec.host_network:
            return None
        address = self._addresses.allocate()
        if address is None:
            raise CannotStartError(
                "FailedCreatePodSandBox",
                "all addresses of simulated pods are in use; remove some pods",
            )
        return address

    def _new_id(self) -> str:
        return f"{self._random.getrandbits(256):064x}"


def _script(pod: Pod, container: Container, restart_count: int) -> Script:
    try:
        return script_for(pod, container.name, restart_count)
    except ScriptError as error:
        raise CannotStartError("CreateContainerConfigError", str(error)) from error
