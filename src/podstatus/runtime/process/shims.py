"""Start shims, and look after those that are children of ours."""

import os
import signal
import sys
from pathlib import Path

from podstatus.runtime.process.layout import PodFolder

_PROGRAM = Path(__file__).with_name("run_shim.py")
_MOST_TOLD = 500
_RESET = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores, and whoever does not know that expects."""


class Shims:
    """Shims that this agent started. Those of agents before it belong to init."""

    def __init__(self) -> None:
        self._children: dict[str, int] = {}
        """Their pids, by sandbox."""

    def start(self, folder: PodFolder, sandbox_id: str) -> None:
        """Start one; it tells by its record that it can be asked. Raises OSError."""
        complaints = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        # Isolated and without site: neither the environment nor what is installed can change
        # what it does. In a session of its own, Ctrl-C is not for it.
        self._children[sandbox_id] = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(_PROGRAM), str(folder.path), sandbox_id],
            {},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(folder.shim_log), complaints, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigdef=_RESET,
            setsigmask=(),
        )

    def has_ended(self, sandbox_id: str) -> bool:
        """Whether one is no more, or was never ours; its remains are gone then."""
        pid = self._children.get(sandbox_id)
        if pid is None:
            return True
        try:
            found, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            found = pid
        if not found:
            return False
        del self._children[sandbox_id]
        return True

    def reap(self) -> None:
        """Let no remains of those that ended stay."""
        for sandbox_id in list(self._children):
            self.has_ended(sandbox_id)


def last_complaint(folder: PodFolder) -> str:
    """What a shim said last, if anything."""
    try:
        text = folder.shim_log.read_bytes()[-_MOST_TOLD:].decode(errors="replace")
    except OSError:
        return ""
    return (text.strip().splitlines() or [""])[-1]
