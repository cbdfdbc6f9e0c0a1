"""Watches processes for their exit, whether or not they are children of this process."""

import asyncio
import logging
import os
import select
from collections.abc import Callable

from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.state.process_identity import open_process

logger = logging.getLogger(__name__)


class ExitWatcher:
    """Watched processes, one pidfd each. Not thread-safe: for one event loop."""

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._poller = select.poll()
        self._failed_callbacks: list[Callable[[], None]] = []
        """Exit callbacks that raised; retried at the next poll."""

    def watch(self, process: ProcessIdentity, on_end: Callable[[], None]) -> bool:
        """Call `on_end` when the process has ended; return False if it already has."""
        pidfd = open_process(process)
        if pidfd is None:
            return False
        self._callbacks[pidfd] = on_end
        self._poller.register(pidfd, select.POLLIN)
        asyncio.get_running_loop().add_reader(pidfd, self._on_exit, pidfd)
        return True

    def poll(self) -> None:
        """Run the callbacks of ended processes now, and retry failed ones."""
        failed, self._failed_callbacks = self._failed_callbacks, []
        for on_end in failed:
            self._call(on_end)
        for pidfd, _ in self._poller.poll(0):
            self._on_exit(pidfd)

    def close(self) -> None:
        """Stop watching all processes; close the pidfds."""
        for pidfd in list(self._callbacks):
            self._unwatch(pidfd)

    def _on_exit(self, fd: int) -> None:
        on_end = self._unwatch(fd)
        if on_end is not None:
            self._call(on_end)

    def _call(self, on_end: Callable[[], None]) -> None:
        try:
            on_end()
        except (OSError, RuntimeDownError) as error:
            # Retry: there is no other notification of this exit.
            self._failed_callbacks.append(on_end)
            logger.warning("exit callback failed, will retry: error=%s", error)

    def _unwatch(self, fd: int) -> Callable[[], None] | None:
        on_end = self._callbacks.pop(fd, None)
        if on_end is not None:
            self._poller.unregister(fd)
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
        return on_end
