"""What a watch showed of nodes, pods and events, reduced to what both servers have to show."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise

from tests.support.processes.api_servers import Document, Server, Watch

_SECONDS = 90.0
_PREFIX = "node.kubernetes.io/"


class Stories:
    """The objects as they changed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._objects: dict[tuple[str, str], list[Document]] = {}
        self._events: list[Document] = []

    @classmethod
    @contextmanager
    def of(cls, server: Server) -> Iterator["Stories"]:
        """Watch everything from now on."""
        stories = cls()
        with ExitStack() as stack:
            threads = []
            for resource in ("nodes", "pods", "events"):
                watch = stack.enter_context(server.watch(f"/api/v1/{resource}?watch=1"))
                threads.append(threading.Thread(target=stories._follow, args=(resource, watch)))
                threads[-1].start()
            yield stories
        for thread in threads:
            thread.join()

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Come back when the stories have got so far. Fails with all of them."""
        deadline = time.monotonic() + _SECONDS
        with self._changed:
            while not is_so():
                assert self._changed.wait(deadline - time.monotonic()), self._describe()

    def wait_newest(self, resource: str, name: str, is_so: Callable[[Document], bool]) -> None:
        """Come back when an object is so."""
        self.wait(lambda: any(map(is_so, self._of(resource, name)[-1:])))

    def conditions(self, node: str) -> list[str]:
        """Of a node: each change of a status or a reason."""
        return _changes(_conditions(it) for it in self._of("nodes", node))

    def taints(self, node: str, effect: str) -> list[str]:
        """Of a node, with this effect, but never both: upstream swaps them by two writes."""
        found = (_taints(it, effect) for it in self._of("nodes", node))
        return _changes(it for it in found if it != "not-ready unreachable")

    def pod(self, name: str) -> list[str]:
        """Each change of Ready, DisruptionTarget, the phase, and whether it is terminating."""
        return _changes(map(_pod, self._of("pods", name)))

    def events(self, *names: str) -> list[str]:
        """About these objects, sorted, without their counts."""
        found = {
            f"{it['involvedObject']['kind']} {it['involvedObject']['name']}: {it['type']} "
            f"{it['reason']} {it['source'].get('component', '')}: {it['message']}"
            for it in self._events
            if it["involvedObject"]["name"] in names
        }
        return sorted(found)

    def newest(self, resource: str, name: str) -> Document:
        return self._of(resource, name)[-1]

    def all(self, resource: str, name: str) -> list[Document]:
        return list(self._of(resource, name))

    def became(
        self, resource: str, name: str, is_so: Callable[[Document], bool]
    ) -> tuple[float, int]:
        """When the object became so, the last time that it did: by our clock, and its version."""
        states = self._of(resource, name)
        found = [
            after
            for before, after in pairwise([{}, *states])
            if is_so(after) and not (before and is_so(before))
        ]
        return found[-1]["seen at"], int(found[-1]["metadata"]["resourceVersion"])

    def _of(self, resource: str, name: str) -> list[Document]:
        return self._objects.get((resource, name), [])

    def _follow(self, resource: str, watch: Watch) -> None:
        for event in watch.follow():
            found = event["object"]
            found["is gone"] = event["type"] == "DELETED"
            found["seen at"] = time.monotonic()
            with self._changed:
                if resource == "events":
                    self._events.append(found)
                else:
                    name = found["metadata"]["name"]
                    self._objects.setdefault((resource, name), []).append(found)
                self._changed.notify_all()

    def _describe(self) -> str:
        lines = []
        for resource, name in self._objects:
            parts = [self.pod(name)]
            if resource == "nodes":
                effects = ("NoSchedule", "NoExecute")
                parts = [self.conditions(name), *(self.taints(name, it) for it in effects)]
            lines.append(f"{name}: {parts} {self.events(name)}")
        return "\n".join(lines)


def _changes(states: Iterator[str]) -> list[str]:
    found: list[str] = []
    for state in states:
        if found[-1:] != [state]:
            found.append(state)
    return found


def _conditions(node: Document) -> str:
    found = node.get("status", {}).get("conditions") or ()
    return " ".join(f"{it['type']}={it['status']}/{it.get('reason', '')}" for it in found)


def _taints(node: Document, effect: str) -> str:
    taints = node["spec"].get("taints") or ()
    return " ".join(
        sorted(it["key"].removeprefix(_PREFIX) for it in taints if it["effect"] == effect)
    )


def _pod(pod: Document) -> str:
    if pod["is gone"]:
        return "gone"
    conditions = {it["type"]: it for it in pod["status"].get("conditions") or ()}
    parts = [pod["status"]["phase"]]
    if "Ready" in conditions:
        ready = conditions["Ready"]
        parts.append(f"Ready={ready['status']}/{ready.get('reason', '')}")
    if "DisruptionTarget" in conditions:
        parts.append(conditions["DisruptionTarget"]["reason"])
    if pod["metadata"].get("deletionTimestamp"):
        parts.append("terminating")
    return " ".join(parts)
