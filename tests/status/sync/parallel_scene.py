"""The parallel sync in an event loop, and ports that misbehave."""

import threading

from podstatus.kube.objects.pod import PodUID
from podstatus.testing.builders import ended, make_status
from tests.support.status_fleet import MemoryOutbox

SUCCEEDED = make_status("Succeeded", ended("app"), Ready="False")


class HangingOutbox(MemoryOutbox):
    """Blocks on disk when it removes an entry."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = threading.Event()

    def drop(self, uid: PodUID) -> None:
        self.disk.wait(10)
        super().drop(uid)
