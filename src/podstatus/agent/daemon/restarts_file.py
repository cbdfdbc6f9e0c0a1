"""The file in which the supervisor records unexpected exits of the agent."""

from pathlib import Path

import msgspec

from podstatus.agent.daemon.endpoints_file import RootDirError, error_reason
from podstatus.base.msgspec_json import decode_json

RESTARTS_FILE = "restarts.jsonl"
STACKS_FILE = "logs/stacks.txt"
"""The stacks of all threads of the last agent that hung."""


class AgentExit(msgspec.Struct, frozen=True, kw_only=True):
    """An unexpected exit of the agent, one line of `restarts.jsonl`."""

    at: str
    lived_seconds: float
    exit_code: int | None = None
    signal: str | None = None
    hung: str = ""
    """Why it was ended by force; empty if it exited or was killed by another process."""
    restart_in_seconds: float
    last_lines: tuple[str, ...] = ()
    """The last lines of its standard error."""

    def __str__(self) -> str:
        how = f"was killed by {self.signal}" if self.signal else f"exited with {self.exit_code}"
        if self.hung:
            how = f"hung ({self.hung}) and {how}"
        # The output of one that hung ends with its stacks.
        last = f": {self.last_lines[-1]}" if self.last_lines and not self.hung else ""
        return f"the agent {how} at {self.at}, after {self.lived_seconds:.0f} s{last}"


def read_restarts(root_dir: Path, count: int) -> tuple[AgentExit, ...]:
    """Return the last `count` exits, the newest last. Raises RootDirError."""
    path = root_dir / RESTARTS_FILE
    try:
        lines = path.read_bytes().splitlines()
        return tuple(decode_json(line, AgentExit) for line in lines[-count:])
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, msgspec.DecodeError) as error:
        raise RootDirError(f"cannot read {path}: {error_reason(error)}; remove it") from error
