"""A blocked event loop yields no probe results."""

import asyncio
import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.containers import HTTPGetAction, Probe
from podstatus.kube.objects.pod import PodUID
from podstatus.probes.check_dispatch import ProbeChecker
from podstatus.probes.check_exec import check_exec
from podstatus.probes.decide.check_result import CheckError
from tests.probes.probe_targets import Command, Talker, target
from tests.support.loopback_servers import HOST, raw_server
from tests.support.world_in_memory import TroubledRuntime

HELD_UP_SECONDS = 1.5


class Prompt(http.server.BaseHTTPRequestHandler):
    """Responds at once, in a thread that is not blocked."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.HTTPServer((HOST, 0), Prompt) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def hold_up_soon() -> None:
    asyncio.get_running_loop().call_later(0.001, time.sleep, HELD_UP_SECONDS)


async def test_an_answer_that_the_agent_was_too_late_to_see_is_no_failure(port: int) -> None:
    clock = SystemClock()
    probe = Probe(http_get=HTTPGetAction(port=port), timeout_seconds=1)
    hold_up_soon()
    with suppress(CheckError):  # no result, so no effect
        checked = await ProbeChecker(TroubledRuntime(clock), clock=clock)(target(probe))
        assert checked.success


async def test_a_command_that_the_agent_was_too_late_to_see_end_has_not_failed() -> None:
    clock = SystemClock()
    hanging = Command(clock, takes=60)
    hold_up_soon()
    with pytest.raises(CheckError, match="event loop was blocked"):
        await check_exec(
            Talker(clock, hanging),
            PodUID("u"),
            "c",
            ("x",),
            seconds=0.1,
            clock=clock,
        )
    assert hanging.is_closed


async def test_a_container_that_is_too_late_has_failed() -> None:
    clock = SystemClock()
    async with raw_server(b"", hangs=True) as server:
        probe = Probe(http_get=HTTPGetAction(port=server.port), timeout_seconds=1)
        checked = await ProbeChecker(TroubledRuntime(clock), clock=clock)(target(probe))
    assert not checked.success
    assert "deadline exceeded" in checked.output
