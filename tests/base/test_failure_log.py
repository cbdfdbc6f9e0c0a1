"""Failures that repeat: one line when they begin, one when they are over."""

import logging

import pytest

from podstatus.base.failure_log import FailureLog

logger = logging.getLogger("podstatus.some.room")


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, bool]]:
    found = [(it.levelname, it.getMessage(), bool(it.exc_info)) for it in caplog.records]
    caplog.clear()
    return found


@pytest.fixture
def trouble(caplog: pytest.LogCaptureFixture) -> FailureLog:
    caplog.set_level(logging.INFO, logger.name)
    return FailureLog(logger, "renewing it", expected=OSError)


def test_a_failure_is_told_when_it_begins_and_when_it_is_over(
    trouble: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    trouble.recovered()
    assert told(caplog) == []
    for number in range(3):
        trouble.failed(OSError(f"no answer {number}"))
    assert str(trouble.error) == "no answer 2"
    trouble.recovered()
    trouble.recovered()
    assert trouble.error is None
    assert told(caplog) == [
        ("WARNING", "renewing it failed, will retry: error=no answer 0", False),
        ("INFO", "renewing it works again", False),
    ]
    trouble.failed(OSError("no answer"))
    assert len(told(caplog)) == 1


def test_another_kind_of_failure_is_told_too(
    trouble: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (OSError("gone"), PermissionError("not yours"), OSError("gone")) * 2:
        trouble.failed(error)
    assert [text for _, text, _ in told(caplog)] == [
        "renewing it failed, will retry: error=gone",
        "renewing it failed, will retry: error=not yours",
    ]


def test_of_what_was_not_expected_the_place_is_told(
    trouble: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    trouble.failed(KeyError("typo"))
    assert told(caplog) == [("WARNING", "renewing it failed, will retry: error='typo'", True)]
