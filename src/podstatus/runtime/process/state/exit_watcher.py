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


class Ends:
    """Processes that somebody waits for. For one event loop; holds a descriptor for each."""

    def __init__(self) -> None:
        self._watched: dict[int, Callable[[], None]] = {}
        self._poll = select.poll()
        self._untold: list[Callable[[], None]] = []
        """Of those that ended, who could not do then what is to be done."""

    def watch(self, process: ProcessIdentity, on_end: Callable[[], None]) -> bool:
        """Call back when it has ended; False if it has already."""
        opened = open_process(process)
        if opened is None:
            return False
        self._watched[opened] = on_end
        self._poll.register(opened, select.POLLIN)
        asyncio.get_running_loop().add_reader(opened, self._over, opened)
        return True

    def look(self) -> None:
        """Do not wait for the loop: call back now for those that have ended, or once more."""
        untold, self._untold = self._untold, []
        for on_end in untold:
            self._tell(on_end)
        for opened, _ in self._poll.poll(0):
            self._over(opened)

    def close(self) -> None:
        """Watch nobody any more."""
        for opened in list(self._watched):
            self._let_go(opened)

    def _over(self, opened: int) -> None:
        on_end = self._let_go(opened)
        if on_end is not None:
            self._tell(on_end)

    def _tell(self, on_end: Callable[[], None]) -> None:
        try:
            on_end()
        except (OSError, RuntimeDownError) as error:
            # Nobody else will ever tell of this end.
            self._untold.append(on_end)
            logger.warning("end of a process is not noted, will retry: error=%s", error)

    def _let_go(self, opened: int) -> Callable[[], None] | None:
        on_end = self._watched.pop(opened, None)
        if on_end is not None:
            self._poll.unregister(opened)
            asyncio.get_running_loop().remove_reader(opened)
            os.close(opened)
        return on_end
