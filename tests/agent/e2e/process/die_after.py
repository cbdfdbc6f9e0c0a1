"""`podstatus run` that is killed before the n-th durable step after a signal.

    python die_after.py 3 run --root-dir …

SIGUSR2 says from when on, and until when, steps are counted: what is cached of a pod, what is
asked of the API server and what it answers, and what is done to files. Each is acknowledged.
"""

import itertools
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from podstatus.cli.main import main
from podstatus.client.typed.pods import HttpPodApi
from podstatus.status.manager import StatusManager

FILES = ("os.mkdir", "os.rename", "os.link", "os.remove")
CGROUPS = "/sys/fs/cgroup"


class Countdown:
    """Ends this process when it is over."""

    def __init__(self, steps: int) -> None:
        self._left = itertools.count(steps, -1)
        self._counts = False
        self._hierarchy = ""

    def turn(self, *_: object) -> None:
        self._counts = not self._counts
        _say(acknowledgement(os.getpid(), counts=self._counts))

    def step(self, what: str) -> None:
        if self._counts and next(self._left) == 0:
            _say(f"killed before: {what}")
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        # What is removed file by file is out of sight already.
        if event in FILES and arguments[-1] == -1 and not self._is_repeated(str(arguments[0])):
            self.step(f"{event} {arguments[0]}")

    def _is_repeated(self, path: str) -> bool:
        """Whether it is a cgroup in another hierarchy than the first: test_cgroups_real.py."""
        hierarchy = path.partition("/podstatus-")[0] if path.startswith(CGROUPS) else ""
        self._hierarchy = self._hierarchy or hierarchy
        return hierarchy not in ("", self._hierarchy)

    def counted(self, work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def counted(*arguments: Any, **options: Any) -> Any:
            self.step(work.__name__)
            return work(*arguments, **options)

        return counted

    def asked(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @wraps(work)
        async def counted(*arguments: Any, **options: Any) -> Any:
            self.step(work.__name__)
            answer = await work(*arguments, **options)
            self.step(f"the answer to {work.__name__}")
            return answer

        return counted


def acknowledgement(pid: int, *, counts: bool) -> str:
    """What this process says when it begins to count steps, and when it does so no more."""
    return f"process {pid} {'counts its steps' if counts else 'has ended to count'}"


def _say(what: str) -> None:
    # A signal may come while something is being said by `sys.stderr`.
    os.write(sys.stderr.fileno(), f"{what}\n".encode())


if __name__ == "__main__":
    countdown = Countdown(int(sys.argv.pop(1)))
    for name in ("set_pod_status", "terminate_pod"):
        setattr(StatusManager, name, countdown.counted(getattr(StatusManager, name)))
    for name in ("patch_pod_status", "delete_pod"):
        setattr(HttpPodApi, name, countdown.asked(getattr(HttpPodApi, name)))
    sys.addaudithook(countdown.audit)
    signal.signal(signal.SIGUSR2, countdown.turn)
    main()
