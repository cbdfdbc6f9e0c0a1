"""Map errors of the API server to errors of actions."""

from collections.abc import Iterator
from contextlib import contextmanager

from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.kube.api_errors import ApiError, DeniedError, RejectedError


@contextmanager
def map_api_errors() -> Iterator[None]:
    """Raise ActionError for a denied or rejected request, RetryableError for any other failure."""
    try:
        yield
    except DeniedError as error:
        raise ActionError(f"the API server denied the request: {error}") from error
    except RejectedError as error:
        raise ActionError(f"the API server rejected the request: {error}") from error
    except ApiError as error:
        raise RetryableError(str(error)) from error
