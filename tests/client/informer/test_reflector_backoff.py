"""How long a reflector waits when it is the watch that fails, and lists work."""

import itertools

import pytest

from podstatus.client.config_errors import WatchIdleError
from podstatus.kube.api_errors import ApiError, RejectedError, UnavailableError
from tests.client.informer.reflecting import Scene
from tests.support.fake_source import FakeSource

SILENT = WatchIdleError("no data for 90 s")


@pytest.mark.parametrize(
    "refusal",
    [
        RejectedError("pods is forbidden: cannot watch", code=403),
        UnavailableError("too large resource version", code=504),
    ],
)
async def test_a_watch_that_is_always_refused_is_not_answered_with_ever_more_lists(
    refusal: ApiError,
) -> None:
    source = FakeSource()
    source.watch_errors.extend(itertools.repeat(refusal, 1000))
    scene = Scene(source)
    async with scene.running():
        await scene.attempts(300, lambda: 0)
        # 0.8, 1.6, … 30 s apart, and one regular list.
        assert len(source.list_calls) < 20


async def test_a_watch_with_nothing_to_tell_is_asked_for_again_at_once_however_often() -> None:
    source = FakeSource()
    scene = Scene(source)
    async with scene.running():
        for _ in range(8):
            await scene.clock.advance(90)
            opened = len(source.streams)
            source.stream.end(SILENT)
            await scene.clock.advance(1)
            assert len(source.streams) == opened + 1
