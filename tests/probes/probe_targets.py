"""Targets of probes, and runtimes that answer exec probes."""

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.objects.containers import Probe
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.probes.decide.targets import ProbeTarget, find_targets
from podstatus.runtime.streams import (
    OutputStream,
    ProcessStream,
    StreamOptions,
    StreamUnavailableError,
    TerminalSize,
)
from tests.support.loopback_servers import HOST
from tests.support.probed_pods import probed_pod, shown
from tests.support.world_in_memory import TroubledRuntime


class Command:
    """A command with output, a duration and an exit code."""

    def __init__(self, clock: Clock, *said: bytes, takes: float = 0.0, code: int = 0) -> None:
        self._clock = clock
        self._said = list(said)
        self._takes = takes
        self._code = code
        self.is_closed = False

    async def read(self) -> tuple[OutputStream, bytes] | None:
        return (OutputStream.STDERR, self._said.pop(0)) if self._said else None

    async def write(self, data: bytes) -> None:
        raise AssertionError

    async def close_stdin(self) -> None:
        raise AssertionError

    def resize(self, size: TerminalSize) -> None:
        raise AssertionError

    async def wait(self) -> int:
        await self._clock.wait(self._takes)
        return self._code

    async def close(self) -> None:
        self.is_closed = True


class Talker(TroubledRuntime):
    """A runtime that runs commands."""

    def __init__(self, clock: Clock, command: Command | None) -> None:
        super().__init__(clock)
        self._command = command
        self.asked: list[tuple[str, ...]] = []

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: StreamOptions
    ) -> ProcessStream:
        self.asked.append((uid, container_id, *command))
        if self._command is None:
            raise StreamUnavailableError("container c is not running")
        return self._command

    async def attach(self, uid: PodUID, container_id: str, request: StreamOptions) -> ProcessStream:
        raise AssertionError


def target(probe: Probe, pod_ip: str = HOST) -> ProbeTarget:
    pod = probed_pod(readiness=probe)
    status: PodStatus = structs.replace(shown(pod), pod_ip=pod_ip)
    [found] = find_targets(pod, status, terminating=False).values()
    return found
