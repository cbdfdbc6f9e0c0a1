"""A runtime that runs commands, and nothing else; and what such a command says."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.streams import OutputStream, ProcessStream, StreamOptions, TerminalSize
from podstatus.testing.clock import FakeClock

Asked = tuple[PodUID, str, tuple[str, ...], StreamOptions]


class FakeExecStream:
    """A command that writes these pieces, takes so many seconds, and ends with this code."""

    def __init__(
        self,
        clock: FakeClock,
        *,
        pieces: Sequence[tuple[OutputStream, bytes]] = (),
        takes: float = 0,
        code: int = 0,
        breaks: Exception | None = None,
    ) -> None:
        self._clock = clock
        self._pieces = list(pieces)
        self._takes = takes
        self._code = code
        self._breaks = breaks
        self.is_closed = False

    @property
    def is_read(self) -> bool:
        """Whether nothing is left to read."""
        return not self._pieces

    async def read(self) -> tuple[OutputStream, bytes] | None:
        if self._breaks is not None:
            raise self._breaks
        return self._pieces.pop(0) if self._pieces else None

    async def write(self, data: bytes) -> None:
        raise AssertionError("nobody talks to it")

    async def close_stdin(self) -> None:
        raise AssertionError("nobody talks to it")

    def resize(self, size: TerminalSize) -> None:
        raise AssertionError("it has no terminal")

    async def wait(self) -> int:
        await self._clock.wait(self._takes)
        return self._code

    async def close(self) -> None:
        self.is_closed = True


class MuteRuntime:
    """A runtime that lists pods with these addresses, and cannot do anything else."""

    name = "mute"
    version = "1"

    def __init__(self, ips: Sequence[str] = ()) -> None:
        self._ips = tuple(ips)

    async def start_pod(self, pod: Pod) -> None:
        raise AssertionError("it starts nothing")

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        raise AssertionError("it starts nothing")

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        raise AssertionError("it stops nothing")

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        raise AssertionError("it removes nothing")

    async def stop_pod(self, uid: PodUID) -> None:
        raise AssertionError("it stops nothing")

    async def remove_pod(self, uid: PodUID) -> None:
        raise AssertionError("it removes nothing")

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        if uid is None:
            return []
        return [RuntimePod(uid=uid, namespace="ns", name="p", facts=PodFacts(ips=self._ips))]

    async def changes(self) -> AsyncIterator[PodUID]:
        await asyncio.Event().wait()
        yield PodUID("")


class TalkingRuntime(MuteRuntime):
    """It runs commands, too, and remembers which."""

    def __init__(self, talk: Callable[[], ProcessStream], ips: Sequence[str] = ()) -> None:
        super().__init__(ips)
        self._talk = talk
        self.asked: list[Asked] = []

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: StreamOptions
    ) -> ProcessStream:
        self.asked.append((uid, container_id, command, request))
        return self._talk()

    async def attach(self, uid: PodUID, container_id: str, request: StreamOptions) -> ProcessStream:
        raise AssertionError("nobody talks to it")
