"""Start shims, and look after those that are children of ours."""

import os
import subprocess
import sys
from pathlib import Path

from podstatus.runtime.process.layout import PodFolder

_PROGRAM = Path(__file__).with_name("run_shim.py")
_MOST_TOLD = 500


class Shims:
    """Shims that this agent started. Those of agents before it belong to init."""

    def __init__(self) -> None:
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        """By sandbox."""

    def start(self, folder: PodFolder, sandbox_id: str) -> None:
        """Start one; it tells by its record that it can be asked. Raises OSError."""
        complaints = os.open(
            folder.shim_log,
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        )
        try:
            # Isolated and without site: neither the environment nor what is installed can
            # change what it does. In a session of its own Ctrl-C is not for it.
            self._children[sandbox_id] = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-S", str(_PROGRAM), str(folder.path), sandbox_id],
                stdin=subprocess.DEVNULL,
                stdout=complaints,
                stderr=complaints,
                cwd="/",
                env={},
                start_new_session=True,
            )
        finally:
            os.close(complaints)

    def has_ended(self, sandbox_id: str) -> bool:
        """Whether one is no more, or was never ours; its remains are gone then."""
        child = self._children.get(sandbox_id)
        if child is None:
            return True
        if child.poll() is None:
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
