import pytest

from podstatus.kube.api_errors import (
    ApiError,
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    RejectedError,
    UnavailableError,
    api_error,
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (404, GoneError),
        (410, GoneError),
        (409, ConflictError),
        (429, BusyError),
        (500, UnavailableError),
        (503, UnavailableError),
        (504, UnavailableError),
        (0, UnavailableError),
        (400, RejectedError),
        (401, DeniedError),
        (403, DeniedError),
        (422, RejectedError),
    ],
)
def test_every_answer_has_its_error(code: int, kind: type[ApiError]) -> None:
    error = api_error(code, "get pod default/pod", reason="Why")
    assert type(error) is kind
    assert (error.code, error.reason, str(error)) == (code, "Why", "get pod default/pod")


def test_without_an_answer_there_is_no_code() -> None:
    assert (ApiError("connection refused").code, ApiError("").reason) == (0, "")


def test_a_busy_server_says_how_long_to_wait() -> None:
    error = api_error(429, "slow down", retry_after=1.5)
    assert isinstance(error, BusyError)
    assert error.retry_after == 1.5


def test_every_error_is_caught_as_an_api_error() -> None:
    kinds = (GoneError, ConflictError, BusyError, UnavailableError, RejectedError)
    assert all(issubclass(kind, ApiError) for kind in kinds)
