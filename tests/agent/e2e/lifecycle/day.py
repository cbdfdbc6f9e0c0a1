"""A script of five minutes with the events of a day, and what a watch saw of it."""

import json
import shutil
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import podstatus
from tests.support.processes.agent_process import Cluster, Document, condition, is_ready
from tests.support.processes.api_servers import Server
from tests.tour.agents import TouringAgent

NEXT_VERSION = "0.1.1"


class Targets:
    """What the probes of the day ask: one server, a path for each pod."""

    def __init__(self) -> None:
        self._down: set[str] = set()
        handler = type("Handler", (_Handler,), {"down": self._down})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def turn(self, name: str, *, healthy: bool) -> None:
        (self._down.discard if healthy else self._down.add)(name)


class _Handler(BaseHTTPRequestHandler):
    down: set[str]

    def do_GET(self) -> None:
        self.send_response(503 if self.path[1:] in self.down else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Diary:
    """All that a watch saw, by the UID of the pod."""

    def __init__(self) -> None:
        self.pages: defaultdict[str, list[Document]] = defaultdict(list)
        self.gone: set[str] = set()

    def write(self, event: Document) -> None:
        pod = event["object"]
        uid = pod["metadata"]["uid"]
        if event["type"] == "DELETED":
            self.gone.add(uid)
        else:
            self.pages[uid].append(pod)

    def of(self, name: str) -> list[list[Document]]:
        """What was seen of each pod that had this name, one after the other."""
        return [page for page in self.pages.values() if page[0]["metadata"]["name"] == name]

    def ready(self, page: list[Document]) -> list[bool]:
        """Ready and not, as it changed; not ready to begin with."""
        seen = [False]
        for pod in page:
            if is_ready(pod) is not seen[-1]:
                seen.append(is_ready(pod))
        return seen

    def hidden_flaps(self, page: list[Document]) -> list[Document]:
        """Where Ready says that it changed, though it looks the same: it was otherwise between."""
        found, before = [], Document()
        for pod in page:
            now = condition(pod, "Ready")
            same = before and now.get("status") == before.get("status")
            if same and now["lastTransitionTime"] != before["lastTransitionTime"]:
                found.append(now)
            before = now or before
        return found


@contextmanager
def followed(server: Server, namespace: str) -> Iterator[Diary]:
    """Watch the pods of a namespace, from its beginning."""
    diary = Diary()
    path = f"/api/v1/namespaces/{namespace}/pods?watch=1&timeoutSeconds=3000"
    with server.watch(path) as watch:

        def follow() -> None:
            for event in watch.follow():
                diary.write(event)

        thread = threading.Thread(target=follow)
        thread.start()
        yield diary
    thread.join()


class Day:
    """What happens on the node, as its users see it."""

    def __init__(self, cluster: Cluster, agent: TouringAgent, targets: Targets) -> None:
        self.cluster, self.agent, self.targets = cluster, agent, targets
        self._began = time.monotonic()
        self._newer = agent.folder / "newer"

    def at(self, second: float, do: Callable[..., object], *args: Any, **named: Any) -> None:
        """Do something at a second of the day."""
        left = self._began + second - time.monotonic()
        assert left > -15, f"the day is {-left:.0f} s behind at {second} s"
        time.sleep(max(0.0, left))  # it is a script
        sys.stdout.write(f"{second:5.0f} s  {do.__name__} {' '.join(map(str, args))}\n")
        sys.stdout.flush()
        do(*args, **named)

    def deploy(self, *names: str, **more: Any) -> None:
        """Services with a readiness probe each second, and a liveness probe."""
        for name in names:
            probe = {"httpGet": self._asks(name), "periodSeconds": 1, "failureThreshold": 1}
            alive = {"exec": {"command": ["true"]}, "periodSeconds": 10, "timeoutSeconds": 5}
            self._create(
                name,
                "trap 'exit 0' TERM; sleep 1000 & wait",
                {"readinessProbe": probe, "livenessProbe": alive, **more},
            )

    def deploy_slow(self, name: str) -> None:
        """One that takes its time to start."""
        ready = {"httpGet": self._asks(name), "periodSeconds": 1}
        is_up = {"command": ["test", "-e", "/tmp/up"]}  # noqa: S108 - its own /tmp
        start = {"exec": is_up, "periodSeconds": 2}
        start |= {"timeoutSeconds": 5, "failureThreshold": 10}
        probes = {"startupProbe": start, "readinessProbe": ready}
        self._create(name, "sleep 5; touch /tmp/up; trap 'exit 0' TERM; sleep 999 & wait", probes)

    def run_job(self, name: str, code: int) -> None:
        self._create(name, f"sleep 2; exit {code}", {}, restartPolicy="Never")

    def crash_loop(self, name: str) -> None:
        self._create(name, "sleep 1; exit 3", {}, restartPolicy="Always")

    def fall_ill(self, name: str) -> None:
        self.targets.turn(name, healthy=False)

    def get_well(self, name: str) -> None:
        self.targets.turn(name, healthy=True)

    def delete(self, *names: str) -> None:
        for name in names:
            self.cluster.delete(name)

    def replace(self, old: str, new: str) -> None:
        """One step of a rollout: the old one goes when the new one is ready."""
        self.deploy(new)
        self.cluster.wait_for(new, is_ready)
        self.cluster.delete(old)

    def stop_agent(self) -> None:
        assert self.agent.stop() == 0, self.agent.log()

    def start_newer(self) -> None:
        """Start the next version, on the same root directory."""
        package = Path(podstatus.__file__).parent
        shutil.copytree(package, self._newer / "podstatus", dirs_exist_ok=True)
        face = self._newer / "podstatus/__init__.py"
        text = face.read_text()
        assert podstatus.__version__ in text
        face.write_text(text.replace(podstatus.__version__, NEXT_VERSION))
        self.agent.python_path = str(self._newer)
        self.start_agent()

    def start_agent(self) -> None:
        self.agent.start()
        self.agent.wait_ready(self.cluster)

    def _asks(self, name: str) -> Document:
        return {"host": "127.0.0.1", "port": self.targets.port, "path": f"/{name}"}

    def _create(self, name: str, script: str, probes: Document, **spec: Any) -> None:
        container = {"name": "app", "image": "none", "command": ["sh", "-c", script], **probes}
        self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {
                    "nodeName": self.agent.node,
                    "terminationGracePeriodSeconds": 5,
                    "containers": [container],
                    **spec,
                },
            }
        )


def lines(diary: Diary) -> str:
    """The observations of a day, for the failure message."""
    lines = []
    for uid, page in diary.pages.items():
        name = page[0]["metadata"]["name"]
        lines.append(f"{name} {uid} ready={diary.ready(page)} gone={uid in diary.gone}")
        lines += [json.dumps(pod["status"]) for pod in page[-3:]]
    return "\n".join(lines)
