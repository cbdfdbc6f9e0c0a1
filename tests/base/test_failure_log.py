"""Repeated failures: one line when they start, one when they are over."""

import logging

import pytest

from podstatus.base.failure_log import FailureLog

logger = logging.getLogger("podstatus.some.package")


def take_records(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, bool]]:
    records = [(it.levelname, it.getMessage(), bool(it.exc_info)) for it in caplog.records]
    caplog.clear()
    return records


@pytest.fixture
def failures(caplog: pytest.LogCaptureFixture) -> FailureLog:
    caplog.set_level(logging.INFO, logger.name)
    return FailureLog(logger, "renewing it", expected=OSError)


def test_a_failure_is_logged_when_it_starts_and_when_it_is_over(
    failures: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    failures.recovered()
    assert take_records(caplog) == []
    for number in range(3):
        failures.failed(OSError(f"no answer {number}"))
    assert str(failures.error) == "no answer 2"
    failures.recovered()
    failures.recovered()
    assert failures.error is None
    assert take_records(caplog) == [
        ("WARNING", "renewing it failed, will retry: error=no answer 0", False),
        ("INFO", "renewing it works again", False),
    ]
    failures.failed(OSError("no answer"))
    assert len(take_records(caplog)) == 1


def test_another_type_of_error_is_logged_too(
    failures: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (OSError("gone"), PermissionError("not yours"), OSError("gone")) * 2:
        failures.failed(error)
    assert [text for _, text, _ in take_records(caplog)] == [
        "renewing it failed, will retry: error=gone",
        "renewing it failed, will retry: error=not yours",
    ]


def test_an_unexpected_error_is_logged_with_a_traceback(
    failures: FailureLog, caplog: pytest.LogCaptureFixture
) -> None:
    failures.failed(KeyError("typo"))
    assert take_records(caplog) == [
        ("WARNING", "renewing it failed, will retry: error='typo'", True)
    ]
