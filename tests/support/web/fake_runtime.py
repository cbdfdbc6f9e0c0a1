"""A fake runtime with logs and processes."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.streams import (
    LogOptions,
    OutputStream,
    StreamOptions,
    StreamUnavailableError,
    TerminalSize,
)


class FakeLog:
    """The log of a container; output may follow until it is closed."""

    def __init__(self, *pieces: bytes, ended: bool = True) -> None:
        self.pieces = list(pieces)
        self.ended = ended
        self.readers = 0
        self._news = asyncio.Event()

    def write(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self._news.set()

    def end(self) -> None:
        self.ended = True
        self._news.set()

    async def read(self, options: LogOptions) -> AsyncIterator[bytes]:
        self.readers += 1
        try:
            done = 0
            while True:
                while done < len(self.pieces):
                    done += 1
                    yield self.pieces[done - 1]
                if self.ended or not options.follow:
                    return
                self._news.clear()
                await self._news.wait()
        finally:
            self.readers -= 1


class FakeProcessStream:
    """A process whose behaviour depends on its command: see `_run`."""

    def __init__(self, command: Sequence[str], request: StreamOptions) -> None:
        self.command = tuple(command)
        self.request = request
        self.sizes: list[TerminalSize] = []
        self.closed = asyncio.Event()
        self.input_ended = False
        self.written = 0
        self._stdin: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self.output: asyncio.Queue[tuple[OutputStream, bytes] | None] = asyncio.Queue(1)
        self._code = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live())

    async def read(self) -> tuple[OutputStream, bytes] | None:
        return await self.output.get()

    async def write(self, data: bytes) -> None:
        await self._stdin.put(data)
        self.written += len(data)

    async def close_stdin(self) -> None:
        self.input_ended = True
        await self._stdin.put(None)

    def resize(self, size: TerminalSize) -> None:
        self.sizes.append(size)

    async def wait(self) -> int:
        code: int = await asyncio.shield(self._code)
        return code

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.closed.set()

    async def _live(self) -> None:
        code = await self._run()
        await self.output.put(None)
        self._code.set_result(code)

    async def _run(self) -> int:
        match self.command:
            case ("echo", *words):
                await self._say(" ".join(words).encode(errors="surrogateescape"))
                return 0
            case ("both",):
                await self._say(b"out")
                await self._say(b"err", OutputStream.STDERR)
                return 0
            case ("exit", code):
                return int(code)
            case ("cat", *code):
                while (data := await self._stdin.get()) is not None:
                    await self._say(data)
                return int(code[0]) if code else 0
            case ("flood",):
                while True:
                    await self._say(b"x" * 65536)
            case _:  # sleep
                await asyncio.Event().wait()
                raise AssertionError("unreachable")

    async def _say(self, data: bytes, channel: OutputStream = OutputStream.STDOUT) -> None:
        await self.output.put((channel, data))


class FakeRuntime:
    """Has logs by container ID, and runs fake processes."""

    def __init__(self) -> None:
        self.logs: dict[str, FakeLog] = {}
        self.asked: list[tuple[str, LogOptions]] = []
        self.talks: list[FakeProcessStream] = []
        self.attached: list[str] = []
        self.problem: Exception | None = None

    async def container_logs(
        self, uid: PodUID, container_id: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        self.asked.append((container_id, options))
        if container_id not in self.logs:
            raise StreamUnavailableError(f"the log of {container_id} is gone")
        reading = self.logs[container_id].read(options)
        try:
            async for piece in reading:
                yield piece
        finally:
            await reading.aclose()  # type: ignore[attr-defined]

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: StreamOptions
    ) -> FakeProcessStream:
        if self.problem is not None:
            raise self.problem
        self.talks.append(FakeProcessStream(command, request))
        return self.talks[-1]

    async def attach(
        self, uid: PodUID, container_id: str, request: StreamOptions
    ) -> FakeProcessStream:
        self.attached.append(container_id)
        return await self.exec(uid, container_id, ("cat", "7"), request)


class FakePods:
    """Pods in memory; all containers of `running` are running."""

    def __init__(self, *pods: Pod, running: dict[str, str] | None = None) -> None:
        self._pods = pods
        self.running = {"app": "fake://app"} if running is None else running

    def pods(self) -> Sequence[Pod]:
        return self._pods

    def find_pod(self, namespace: str, name: str, uid: str = "") -> Pod | None:
        for pod in self._pods:
            if pod.full_name == (namespace, name) and uid in ("", pod.uid):
                return pod
        return None

    def running_pods(self) -> Sequence[RuntimePod]:
        return [
            RuntimePod(
                uid=pod.uid,
                namespace=pod.namespace,
                name=pod.name,
                facts=PodFacts(
                    containers=tuple(
                        ContainerFacts(
                            name=name, id=made, image="app:1", state=ContainerRunState.RUNNING
                        )
                        for name, made in self.running.items()
                    )
                ),
            )
            for pod in self._pods
        ]
