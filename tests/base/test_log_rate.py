"""Log records caused by clients: one line per message and minute, without client data."""

import logging

from podstatus.base.log_rate import RateLimitFilter
from podstatus.testing.clock import FakeClock


class Lines(logging.Handler):
    """Collects formatted records."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def logger_with(lines: Lines, clock: FakeClock) -> logging.Logger:
    logger = logging.getLogger(f"of.others.{id(lines)}")
    logger.addHandler(lines)
    logger.addFilter(RateLimitFilter(clock))
    return logger


async def test_one_line_per_minute_without_what_was_sent() -> None:
    lines, clock = Lines(), FakeClock()
    logger = logger_with(lines, clock)
    for seconds in (0, 10, 10, 41):
        await clock.advance(seconds)
        clock.step(3600)
        logger.error("Error from %s", "100%", exc_info=ValueError("Bearer secret \x1b[2J"))
    logger.error("another\nkind")
    assert lines.lines == [
        "Error from 100%: error=ValueError",
        "Error from 100%: error=ValueError dropped=2",
        "another",
    ]


def test_messages_that_are_no_constants_do_not_pass_forever() -> None:
    lines = Lines()
    logger = logger_with(lines, FakeClock())
    for number in range(1000):
        logger.error(f"message {number}")  # noqa: G004 - as third-party code may do
    assert len(lines.lines) == 100
