"""Tell in the root-dir where things are, also when its disk has no room for that yet."""

import asyncio
import errno
import logging

from podstatus.agent.root_dir import Endpoints, RootDir, RootDirError

_logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_TRIES = 1.0


def can_tell(root: RootDir, endpoints: Endpoints) -> bool:
    """Tell it, if there is room for it. Raises RootDirError for anything but a full disk."""
    try:
        root.announce(endpoints)
    except RootDirError as error:
        if is_full(error):
            return False
        raise
    return True


async def tell_when_there_is_room(root: RootDir, endpoints: Endpoints) -> None:
    """Tell it later: pods are looked after without that file. Raises RootDirError."""
    _logger.error(
        "cannot tell where the agent listens, its disk is full; make room, and it will: folder=%s",
        root.path,
    )
    while True:
        await asyncio.sleep(_SECONDS_BETWEEN_TRIES)
        if can_tell(root, endpoints):
            return


def is_full(error: BaseException | None) -> bool:
    """Whether a disk without room is behind it: that passes, and another try repairs it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False
