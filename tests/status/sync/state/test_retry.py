from typing import Any

import pytest

from podstatus.kube.api_errors import ApiError, api_error
from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.sync.state.retry import (
    Failure,
    Retry,
    classify_error,
    next_retry,
)

VERSION = 3
SENDING = ParallelSyncOptions(
    initial_retry_seconds=1, max_retry_seconds=8, rejected_retry_seconds=100
)


def after(*errors: Exception, sending: ParallelSyncOptions = SENDING, chance: float = 0.0) -> Retry:
    """Return the retry state after these failures, all at time 0."""
    retry = None
    for error in errors:
        retry = next_retry(retry, VERSION, error, sending, now=0, jitter=chance)
    assert retry is not None
    return retry


def http(code: int, **more: Any) -> ApiError:
    return api_error(code, "no", **more)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (http(404), Failure.GONE),
        (http(410), Failure.GONE),
        (http(409), Failure.CONFLICT),
        (http(429), Failure.BUSY),
        (http(422), Failure.REJECTED),
        (http(400), Failure.REJECTED),
        (http(401), Failure.DENIED),
        (http(403), Failure.DENIED),
        (http(500), Failure.UNAVAILABLE),
        (http(0), Failure.UNAVAILABLE),
        (ApiError("of no kind"), Failure.UNAVAILABLE),
        (ZeroDivisionError(), Failure.BROKEN),
    ],
)
def test_every_error_is_of_a_kind(error: Exception, failure: Failure) -> None:
    assert classify_error(error) is failure


@pytest.mark.parametrize("code", [409, 429, 500, 403])
def test_waits_double_up_to_the_longest(code: int) -> None:
    waits = [after(*[http(code)] * times).at for times in range(1, 7)]
    assert waits == [1, 2, 4, 8, 8, 8]


def test_waits_for_a_pod_that_is_gone_grow_up_to_the_quarantine() -> None:
    waits = [after(*[http(404)] * times).at for times in (1, 2, 7, 8, 99)]
    assert waits == [1, 2, 64, 100, 100]


def test_chance_takes_up_to_half_of_a_wait() -> None:
    assert after(http(500), http(500), chance=1).at == 1
    assert after(http(500), http(500), chance=0.5).at == 1.5


def test_waits_grow_over_failures_of_different_kinds() -> None:
    assert after(http(409), http(500), ZeroDivisionError(), http(429)).at == 8


def test_a_new_version_does_not_shorten_the_wait() -> None:
    assert after(http(500), http(500)).due(4) == 2


def test_a_rejected_status_stays_away_for_the_quarantine_unless_it_changes() -> None:
    retry = after(http(422))
    assert (retry.due(3), retry.due(4)) == (100, 0)


def test_a_status_that_changes_and_is_rejected_again_and_again_has_to_wait_too() -> None:
    changed = [after(*[http(422)] * times).due(4) for times in range(1, 7)]
    assert changed == [0, 2, 4, 8, 8, 8]
    assert after(http(409), http(422)).due(4) == 2


@pytest.mark.parametrize(
    ("asked", "waited"),
    [(None, 1), (0.0, 1), (5.0, 5), (-5.0, 1), (1e9, 8), (float("inf"), 8), (float("nan"), 1)],
)
def test_what_a_server_asks_for_is_honoured_up_to_the_maximum(
    asked: float | None, waited: float
) -> None:
    assert after(http(429, retry_after=asked)).at == waited
    assert after(http(503, retry_after=asked)).at == waited


@pytest.mark.parametrize("asked", [None, 0.0, -5.0, 0.1, float("nan")])
def test_a_server_that_asks_for_less_does_not_change_the_back_off(asked: float | None) -> None:
    sending = ParallelSyncOptions(initial_retry_seconds=0.5)
    assert after(http(429, retry_after=asked), sending=sending).at == 0.5


def test_failures_are_labels_of_a_metric_that_dashboards_know() -> None:
    labels = "gone conflict busy unavailable rejected denied broken"
    assert [failure.value for failure in Failure] == labels.split()


def test_a_retry_that_is_hastened_may_go_now_and_still_counts() -> None:
    retry = after(http(500), http(500)).immediate()
    assert (retry.due(3), retry.due(4)) == (0, 0)
    assert next_retry(retry, VERSION, http(500), SENDING, now=0, jitter=0).at == 4
