import pytest

from podstatus.base.clock import Elapsed


class SetClock:
    """A clock that shows what it is set to, in seconds."""

    def __init__(self) -> None:
        self.shows = 1000.0

    def now(self) -> int:
        return round(self.shows * 1e9)

    async def wait(self, seconds: float) -> None:
        """Nobody waits here."""


@pytest.mark.parametrize(
    ("shown", "elapsed"),
    [
        pytest.param([1000], [0], id="it begins with nothing"),
        pytest.param([1001, 1001, 1003.5], [1, 1, 3.5], id="it passes with the clock"),
        pytest.param([1005, 400, 402], [5, 5, 7], id="a clock set back stops it for a moment"),
        pytest.param([1001, 9000, 9001], [1, 8000, 8001], id="a clock set ahead takes it along"),
    ],
)
def test_it_never_goes_back(shown: list[float], elapsed: list[float]) -> None:
    clock = SetClock()
    seconds, seen = Elapsed(clock), []
    for clock.shows in shown:
        seen.append(seconds.seconds())
    assert seen == elapsed
