"""Files that cannot grow, as on a full disk."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_file_can_grow() -> Iterator[None]:
    """Writes to files of this process fail; pipes and sockets work."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
