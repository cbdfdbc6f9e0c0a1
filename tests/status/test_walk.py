"""The walk of one status update in ARCHITECTURE.md, compared with a trace of it."""

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager
from podstatus.status.store import StatusStore
from podstatus.testing.builders import make_pod, make_status, running
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from tests.support.loops import until

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "podstatus"
TRACED = (str(PACKAGE / "status"), str(PACKAGE / "pods"))
MAX_FILES, MAX_CALLS = 12, 70


class Trace:
    """Calls of `status` and `pods` until the acknowledgement is recorded; comprehensions aside."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.is_acknowledged = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "return" and code is StatusStore.acknowledge.__code__:
            self.is_acknowledged = True
        is_function = not code.co_name.startswith("<") or code.co_name == "<lambda>"
        is_traced = is_function and code.co_filename.startswith(TRACED)
        if event == "call" and is_traced and not self.is_acknowledged:
            self.calls.append(str(Path(code.co_filename).relative_to(PACKAGE)))


@contextmanager
def tracing() -> Iterator[Trace]:
    trace = Trace()
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(None)


def walk() -> list[str]:
    """The files of the table, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text[text.index("## One status, end to end") :]
    return re.findall(r"^\| `((?:status|pods)/\S+\.py)` \|", section, re.MULTILINE)


async def test_one_update_takes_the_walk_of_the_architecture() -> None:
    pods, api = PodManager(), InMemoryPodApi()
    manager = StatusManager(api, pods, FakeDeletionSafety(), clock=FakeClock())
    api.put(make_pod())
    pods.set_pods(api.pods())
    pod = api.pods()[0]
    task = asyncio.ensure_future(manager.run())
    manager.set_pod_status(pod, make_status("Running", running("app"), Ready="False"))
    await until(lambda: manager.is_acknowledged(pod.uid))
    pods.set_pods(api.pods())
    with tracing() as trace:
        manager.set_pod_status(api.pods()[0], make_status("Running", running("app"), Ready="True"))
        await until(lambda: trace.is_acknowledged)
    manager.stop(drain=0)
    await task
    assert list(dict.fromkeys(trace.calls)) == walk()
    assert len(walk()) <= MAX_FILES
    assert len(trace.calls) <= MAX_CALLS, trace.calls
