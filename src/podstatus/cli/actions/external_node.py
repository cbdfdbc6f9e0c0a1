"""Whether a stopped node belongs to an external cluster, and how its containers are ended.

`podstatus down` ends only pods of the embedded API server: others belong to their cluster.
"""

from pathlib import Path

import msgspec

from podstatus.agent.daemon.server_identity import SERVER_FILE, ServerIdentity
from podstatus.apiserver.storage.sqlite_file import DATABASE
from podstatus.base.msgspec_json import decode_json
from podstatus.cli.program import with_root_dir


def recorded_server(folder: Path) -> ServerIdentity | None:
    """Return the API server that the node of a root directory belongs to, None if unknown."""
    try:
        return decode_json((folder / SERVER_FILE).read_bytes(), ServerIdentity)
    except (OSError, msgspec.DecodeError):
        return None


def is_external_node(folder: Path) -> bool:
    """Return whether `podstatus down` refuses to end the pods of this node."""
    server = recorded_server(folder)
    if server is None:
        return not (folder / "apiserver" / DATABASE).exists()
    return not server.embedded


def end_command(folder: Path, *, is_external: bool) -> str:
    """Return how to end containers that run without an agent, for messages with its start."""
    if is_external:
        return f"start the node again, then: {with_root_dir('drain', folder)}"
    return with_root_dir("down", folder)
