"""What the history of an observer is of, and since when; in the root-dir."""

import msgspec

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.observer.cluster_view import Observed
from podstatus.base.msgspec_json import decode_json

OBSERVED = "observed.json"
"""In the root-dir."""


class _Place(msgspec.Struct, frozen=True):
    server: str
    observed: Observed
    after: int
    """The id of the last moment of before: that, and older ones, are of other places."""


def begun_after(root: RootDir, server: str, observed: Observed, *, newest: int) -> int:
    """After which moment the history is of this; from now on, if it was of something else.

    `newest` is the id of its last moment. Raises RootDirError.
    """
    known = _read(root.read(OBSERVED))
    is_same = known is not None and (known.server, known.observed) == (server, observed)
    # A moment that is yet to come was in another file, which is not there any more.
    if known is not None and is_same and known.after <= newest:
        return known.after
    root.write(OBSERVED, msgspec.json.encode(_Place(server, observed, newest)))
    return newest


def _read(content: bytes | None) -> _Place | None:
    try:
        return None if content is None else decode_json(content, _Place)
    except msgspec.DecodeError:
        return None
