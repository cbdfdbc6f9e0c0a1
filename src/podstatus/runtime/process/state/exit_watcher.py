"""Be told when processes end, whoever their parents are."""

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
    """Processes that somebody waits for. For one event loop; holds a descriptor for each."""

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._poller = select.poll()
        self._failed_callbacks: list[Callable[[], None]] = []
        """Of those that ended, who could not do then what is to be done."""

    def watch(self, process: ProcessIdentity, on_end: Callable[[], None]) -> bool:
        """Call back when it has ended; False if it has already."""
        opened = open_process(process)
        if opened is None:
            return False
        self._callbacks[opened] = on_end
        self._poller.register(opened, select.POLLIN)
        asyncio.get_running_loop().add_reader(opened, self._on_exit, opened)
        return True

    def poll(self) -> None:
        """Do not wait for the loop: call back now for those that have ended, or once more."""
        untold, self._failed_callbacks = self._failed_callbacks, []
        for on_end in untold:
            self._call(on_end)
        for opened, _ in self._poller.poll(0):
            self._on_exit(opened)

    def close(self) -> None:
        """Watch nobody any more."""
        for opened in list(self._callbacks):
            self._unwatch(opened)

    def _on_exit(self, fd: int) -> None:
        on_end = self._unwatch(fd)
        if on_end is not None:
            self._call(on_end)

    def _call(self, on_end: Callable[[], None]) -> None:
        try:
            on_end()
        except (OSError, RuntimeDownError) as error:
            # Nobody else will ever tell of this end.
            self._failed_callbacks.append(on_end)
            logger.warning("end of a process is not noted, will retry: error=%s", error)

    def _unwatch(self, fd: int) -> Callable[[], None] | None:
        on_end = self._callbacks.pop(fd, None)
        if on_end is not None:
            self._poller.unregister(fd)
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
        return on_end
