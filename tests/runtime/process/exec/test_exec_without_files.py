"""An agent at its limit of open files reports that, and leaks nothing."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podstatus.base.system_clock import SystemClock
from podstatus.runtime.process.exec.start import exec_in
from podstatus.runtime.streams import StreamOptions, StreamUnavailableError
from tests.runtime.process.exec.containers import Container, plain_container

MORE_THAN_A_TALK_OPENS = 16


def open_files() -> dict[int, str]:
    """Return the targets of open descriptors by number, without the one used for listing."""
    targets = {}
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            targets[int(path.name)] = str(path.readlink())
    return targets


@contextmanager
def only(free: int) -> Iterator[None]:
    """Allow only this many more open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.open(os.devnull, os.O_RDONLY)
    os.close(spare)
    held: list[int] = []
    highest = max(open_files())
    try:
        while spare <= highest:
            held.append(spare := os.open(os.devnull, os.O_RDONLY))
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 1 + free, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for opened in held:
            os.close(opened)


async def try_sessions(container: Container) -> list[bool]:
    worked = []
    request = StreamOptions(stdin=True, stdout=True, stderr=True)
    for free in range(MORE_THAN_A_TALK_OPENS):
        with only(free):
            try:
                session = await exec_in(
                    container.process, container.launch, ("true",), request, clock=SystemClock()
                )
            except StreamUnavailableError:
                worked.append(False)
                continue
            await session.close()
            worked.append(True)
    return worked


async def test_a_session_that_cannot_start_leaves_nothing_open() -> None:
    with plain_container() as container:
        before = open_files()
        worked = await try_sessions(container)
        assert open_files() == before
        assert worked == sorted(worked)
        assert worked[0] is False
        assert worked[-1] is True
