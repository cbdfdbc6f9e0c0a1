"""The campaign's own watch of pods: nothing that the API shows is missed."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPSConnection

from podstatus.testing.servers.access import ServerAccess
from tests.soak.history import History
from tests.support.processes.agent_process import Document

_PODS = "/api/v1/pods"
_AGAIN_SECONDS = 0.1


class Watcher:
    """Lists and watches pods in a thread, again and again, and keeps complaints."""

    def __init__(self, access: ServerAccess, history: History) -> None:
        self._access = access
        self._history = history
        self._lock = threading.Lock()
        self._complaints: list[str] = []
        self._version = ""
        self._stopped = False
        self._connection: HTTPSConnection | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self.lists = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._thread.join(60)

    def complaints(self) -> list[str]:
        """All since the last time."""
        with self._lock:
            found, self._complaints = self._complaints, []
            return found

    def gone(self) -> dict[str, Document]:
        """The last that was seen of pods that are gone."""
        with self._lock:
            return dict(self._history.gone)

    def seen(self) -> tuple[int, int]:
        """How many events there were, and how many ends they told of."""
        with self._lock:
            return self._history.events, self._history.ends_seen

    def _run(self) -> None:
        while not self._stopped:
            with suppress(OSError, HTTPException, ValueError):
                if not self._version:
                    self._list()
                self._watch()
            time.sleep(_AGAIN_SECONDS)

    def _list(self) -> None:
        code, found = self._access.request("GET", _PODS)
        if code != 200:
            return
        self.lists += 1
        pods = list(found["items"])
        with self._lock:
            self._history.missing({pod["metadata"]["uid"] for pod in pods})
        for pod in pods:
            self._see("MODIFIED", pod)
        self._version = found["metadata"]["resourceVersion"]

    def _watch(self) -> None:
        for event in self._events():
            if event["type"] == "ERROR":
                self._version = ""  # what happened meanwhile is forgotten: list anew
                return
            if event["type"] != "BOOKMARK":
                self._see(event["type"], event["object"])
            self._version = event["object"]["metadata"]["resourceVersion"]

    def _events(self) -> Iterator[Document]:
        connection = self._access.connect()
        connection.timeout = 5.0
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={self._version}"
        try:
            headers = {"Authorization": f"Bearer {self._access.token}"}
            connection.request("GET", _PODS + query, headers=headers)
            answer = connection.getresponse()
            if answer.status == 410:
                self._version = ""
            while answer.status == 200 and not self._stopped and (line := answer.readline()):
                yield json.loads(line)
        finally:
            connection.close()

    def _see(self, kind: str, pod: Document) -> None:
        with self._lock:
            self._complaints += self._history.see(kind, pod)
