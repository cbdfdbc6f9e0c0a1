"""Errors of the API server as those of deeds."""

from collections.abc import Iterator
from contextlib import contextmanager

from podstatus.alerts.ports import DeedError, TransientDeedError
from podstatus.kube.errors import ApiError, DeniedError, RejectedError


@contextmanager
def deed_errors() -> Iterator[None]:
    """What is refused is refused for good; the rest may be tried again."""
    try:
        yield
    except DeniedError as error:
        raise DeedError(f"the API server does not let us: {error}") from error
    except RejectedError as error:
        raise DeedError(f"the API server refused it: {error}") from error
    except ApiError as error:
        raise TransientDeedError(str(error)) from error
