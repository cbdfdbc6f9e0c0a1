"""What the history of an observer is of, and since when; in the root-dir."""

import msgspec

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.observer.cluster_view import ObserverScope
from podstatus.base.msgspec_json import decode_json

SCOPE_FILE = "observed.json"
"""In the root-dir."""


class _HistoryScope(msgspec.Struct, frozen=True):
    server: str
    observed: ObserverScope
    after: int
    """The id of the last moment of before: that, and older ones, are of other places."""


def history_start(root: RootDir, server: str, scope: ObserverScope, *, newest: int) -> int:
    """After which moment the history is of this; from now on, if it was of something else.

    `newest` is the id of its last moment. Raises RootDirError.
    """
    known = _decode(root.read(SCOPE_FILE))
    is_same = known is not None and (known.server, known.observed) == (server, scope)
    # A moment that is yet to come was in another file, which is not there any more.
    if known is not None and is_same and known.after <= newest:
        return known.after
    root.write(SCOPE_FILE, msgspec.json.encode(_HistoryScope(server, scope, newest)))
    return newest


def _decode(content: bytes | None) -> _HistoryScope | None:
    try:
        return None if content is None else decode_json(content, _HistoryScope)
    except msgspec.DecodeError:
        return None
