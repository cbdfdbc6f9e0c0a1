"""Errors of the API server as those of deeds."""

from collections.abc import Iterator
from contextlib import contextmanager

from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.kube.errors import ApiError, DeniedError, RejectedError


@contextmanager
def map_api_errors() -> Iterator[None]:
    """What is refused is refused for good; the rest may be tried again."""
    try:
        yield
    except DeniedError as error:
        raise ActionError(f"the API server does not let us: {error}") from error
    except RejectedError as error:
        raise ActionError(f"the API server refused it: {error}") from error
    except ApiError as error:
        raise RetryableError(str(error)) from error
