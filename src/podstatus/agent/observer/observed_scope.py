"""The file that says which cluster and scope the history of an observer belongs to."""

import msgspec

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.observer.cluster_view import ObserverScope
from podstatus.base.msgspec_json import decode_json

SCOPE_FILE = "observed.json"
"""File in the root directory."""


class _HistoryScope(msgspec.Struct, frozen=True):
    server: str
    observed: ObserverScope
    after: int
    """Entries up to this id belong to another cluster or scope."""


def history_start(root: RootDir, server: str, scope: ObserverScope, *, newest: int) -> int:
    """Return the id after which the history belongs to this server and scope.

    If it belonged to another one, that is `newest`, the id of the last entry, which is then
    recorded. Raises RootDirError.
    """
    recorded = _decode(root.read(SCOPE_FILE))
    is_same = recorded is not None and (recorded.server, recorded.observed) == (server, scope)
    # An id above `newest` belongs to a history file that has been replaced since.
    if recorded is not None and is_same and recorded.after <= newest:
        return recorded.after
    root.write(SCOPE_FILE, msgspec.json.encode(_HistoryScope(server, scope, newest)))
    return newest


def _decode(content: bytes | None) -> _HistoryScope | None:
    try:
        return None if content is None else decode_json(content, _HistoryScope)
    except msgspec.DecodeError:
        return None
