"""An isolated pod cannot break out, whatever the API allows it to request.

As root, and as an ordinary user, whose pods have the same user as the agent.
"""

import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.agent.e2e.security import break_out
from tests.support.break_out_table import PROPERTY, table
from tests.support.processes.agent_process import Document, container
from tests.support.processes.process_node import (
    ProcessNode,
    command_pod,
    need_nobody,
    need_root,
    process_node,
    python_pod,
)

pytestmark = pytest.mark.slow

PSST = "psst-only-this-pod-knows"
FOLDERS = (
    *("/", "/etc", "/usr", "/usr/bin", "/home", "/root", "/var", "/var/lib", "/var/tmp"),  # noqa: S108
    *("/run", "/sys", "/sys/fs/cgroup", "/proc", "/proc/sys/kernel", "/dev", "/boot", "/opt"),
)
COVERED = ("/home", "/root", "/run", "/tmp", "/var/tmp")  # noqa: S108
_VOLUME = [{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "psst"}}]
_MOUNTS = [{"name": "v", "mountPath": "/data"}, {"name": "s", "mountPath": "/psst"}]


class Scene:
    """A pod that has something to hide, and what another one tried."""

    def __init__(self, node: ProcessNode, socket_path: str) -> None:
        self.node = node
        cluster = node.cluster
        secret = {"metadata": {"name": "psst"}, "stringData": {"key": PSST}}
        code, _ = cluster.access.request("POST", "/api/v1/namespaces/default/secrets", secret)
        assert code == 201
        env = [{"name": "PSST", "value": PSST}]
        mine = {"env": env, "volumeMounts": _MOUNTS}
        script = "echo hi; exec sleep 1000"
        cluster.create(command_pod("victim", "sh", "-c", script, container=mine, volumes=_VOLUME))
        (self.victim,) = cluster.wait_ready("victim")
        node.wait_for_log("victim", "hi")
        self.aim = self._aim(socket_path)
        script = Path(break_out.__file__).read_text()
        cluster.create(python_pod("evil", script, json.dumps(self.aim)))
        self.came: dict[str, Any] = node.result("evil")

    def _aim(self, socket_path: str) -> dict[str, Any]:
        node, theirs = self.node, self.node.pod_folder("victim")
        (place,) = theirs.glob("containers/*")
        started = json.loads((place / "started.json").read_bytes())
        endpoints = node.endpoints()
        own = {"the root-dir": node.root_dir, "pods": node.pods_folder, "another pod": theirs}
        files = {
            "launch of another pod": place / "launch.json",
            "log of another pod": place / "0.log",
            "secret of another pod": theirs / "volumes/s/key",
            "kubeconfig": node.root_dir / "kubeconfig",
            "token": node.root_dir / "apiserver/token",
            "endpoints": node.root_dir / "endpoints.json",
            "key": node.root_dir / "pki/agent.key",
        }
        assert [path for path in files.values() if not path.exists()] == []
        assert node.process is not None
        return {
            "folders": {path: path for path in FOLDERS} | {k: str(v) for k, v in own.items()},
            "covered": {path: path for path in COVERED} | {"the root-dir": str(node.root_dir)},
            "files": {name: str(path) for name, path in files.items()},
            "processes": {
                "agent": node.process.pid,
                "API server": node.server().pid,
                "shim": node.shim("victim").process.pid,
                "keeper": started["keeper"]["pid"],
                "command": started["process"]["pid"],
            },
            "sockets": {"a service of the machine": socket_path},
            "urls": {
                "exec": f"{endpoints['agent']}/exec/default/victim/app?command=id&output=1",
                "log": f"{endpoints['agent']}/containerLogs/default/victim/app",
                "own log": f"{endpoints['agent']}/logs/",
                "secrets": f"{endpoints['apiserver']}/api/v1/secrets",
            },
        }


@contextmanager
def service() -> Iterator[str]:
    """A socket of a service of this machine, as there are in /run; only root can have one."""
    if os.geteuid():
        yield "/run/user/probe"
        return
    with tempfile.TemporaryDirectory(prefix="podstatus-", dir="/run") as folder:
        Path(folder).chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"{folder}/socket")
            listening.listen()
            Path(folder, "socket").chmod(0o777)
            yield f"{folder}/socket"


@pytest.fixture(scope="module", params=["ourselves", "ordinary user"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    user = need_nobody() if request.param == "ordinary user" else None
    with process_node(isolation="bubblewrap", user=user) as node, service() as path:
        node.start_ready()
        yield Scene(node, path)


@pytest.mark.parametrize(
    ("what", "least"),
    [
        ("write", 25),
        ("remount", 20),
        ("remount as own root", 20),
        ("bind", 20),
        ("bind as own root", 20),
        ("uncover", 6),
        ("uncover as own root", 6),
        ("read", 8),
        ("read by /proc", 7),
        ("read by ..", 7),
        ("link", 7),
        ("signal", 5),
        ("trace", 5),
        ("take a file", 5),
        ("look at environ", 5),
        ("look at cmdline", 5),
        ("look at maps", 5),
        ("look at root/etc/passwd", 5),
        ("look at fd/0", 5),
        ("set", 5),
        ("device", 2),
        ("mount", 2),
        ("connect", 1),
        ("ask", 4),
    ],
)
def test_an_attempt_is_refused(scene: Scene, what: str, least: int) -> None:
    tried = {name: came for name, came in scene.came.items() if name.startswith(f"{what}: ")}
    assert len(tried) >= least
    assert {n: came for n, came in tried.items() if not came.startswith("refused: ")} == {}


def test_no_file_of_ours_is_handed_in(scene: Scene) -> None:
    """A pod with bubblewrap's status file could name a process to be killed."""
    assert scene.came["inherited"] == {}


def test_nothing_came_of_it_outside(
    scene: Scene, record_property: Callable[[str, Any], None], request: pytest.FixtureRequest
) -> None:
    title = f"files and processes, agent as {request.node.callspec.params['scene']}"
    record_property(PROPERTY, table(title, {"container": scene.came}))
    assert PSST not in json.dumps(scene.came)
    assert [p for p in scene.aim["folders"].values() if Path(p, "probe").exists()] == []
    for pid in scene.aim["processes"].values():
        assert psutil.Process(pid).is_running()
    now = scene.node.cluster.pod("victim")
    assert now is not None
    assert container(now) == container(scene.victim)


def test_a_path_of_the_host_is_written_only_if_the_spec_says_so(scene: Scene) -> None:
    need_root()
    with tempfile.TemporaryDirectory(prefix="podstatus-", dir="/var/lib") as folder:
        Path(folder).chmod(0o777)
        for name, mount in (("read", {"readOnly": True}), ("write", {})):
            script = f"touch /host/{name} 2>&- && echo '\"done\"' || echo '\"refused\"'"
            scene.node.cluster.create(_on_host(f"host-{name}", folder, script, **mount))
        assert scene.node.result("host-read") == "refused"
        assert scene.node.result("host-write") == "done"
        assert [path.name for path in Path(folder).iterdir()] == ["write"]


HOST_PATHS = {
    "a procfs": ("/proc", True, "is a procfs"),
    "a procfs below": ("/", True, "is a procfs"),
    "a procfs by /proc/self": ("/proc/self/root", True, "/proc/self is a symbolic link"),
    "cgroups": ("/sys/fs/cgroup", False, "set readOnly: true"),
    "the kernel's settings": ("/sys", False, "set readOnly: true"),
    "devices": ("/dev", False, "set readOnly: true"),
    "a device": ("/dev/null", True, "containers have no access to devices"),
    "the agent's folder": ("{root}", True, "it belongs to the agent"),
    "below the agent's folder": ("{root}/runtime/pods", True, "it belongs to the agent"),
    "the agent's folder by dots": ("{root}/./runtime//", True, "it belongs to the agent"),
    "the agent's folder by a link": ("{folder}/link", True, "is a symbolic link"),
    "below a link to the agent's folder": ("{folder}/link/runtime", True, "is a symbolic link"),
    "around the agent's folder": ("{folder}", False, "it contains paths of the agent"),
}
"""Paths of the host that are ways out: what, whether for reading only, and why it is refused."""


@pytest.mark.parametrize("way", HOST_PATHS)
def test_a_path_of_the_host_is_no_way_out(
    scene: Scene, way: str, record_property: Callable[[str, Any], None]
) -> None:
    node = scene.node
    link = node.folder / "link"
    if not link.is_symlink():
        link.symlink_to(node.root_dir)
    path, read_only, why = HOST_PATHS[way]
    path = path.format(root=node.root_dir, folder=node.folder)
    name = f"host-{list(HOST_PATHS).index(way)}"
    node.cluster.create(_on_host(name, path, "echo broken out", readOnly=read_only))
    found = node.cluster.wait_for(name, _why_waiting)
    (status,) = found["status"]["containerStatuses"]
    record_property(PROPERTY, [f"hostPath: {way:40}{status['state']['waiting']['reason']}"])
    assert status["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert why in _why_waiting(found)


def test_the_agents_folder_is_empty_in_a_path_of_the_host(scene: Scene) -> None:
    node = scene.node
    script = f"cat /host/{node.root_dir.name}/kubeconfig 2>&- || echo '\"refused\"'"
    node.cluster.create(_on_host("host-above", str(node.folder), script, readOnly=True))
    assert node.result("host-above") == "refused"


def test_no_file_of_ours_is_handed_in_with_a_path_of_the_host(scene: Scene) -> None:
    with tempfile.TemporaryDirectory(prefix="podstatus-", dir=scene.node.folder) as folder:
        Path(folder).chmod(0o777)
        aim: Document = {"folders": {}, "covered": {}, "files": {}, "processes": {}}
        words = Path(break_out.__file__).read_text(), json.dumps({**aim, "sockets": {}, "urls": {}})
        pod = python_pod("host-files", *words)
        pod["spec"]["volumes"] = [{"name": "h", "hostPath": {"path": folder}}]
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "h", "mountPath": "/host"}]
        scene.node.cluster.create(pod)
        assert scene.node.result("host-files")["inherited"] == {}


@pytest.mark.parametrize("path", ["..", "a/../../..", "/etc"])
def test_a_part_of_a_volume_does_not_lead_out_of_it(scene: Scene, path: str) -> None:
    mount = {"name": "v", "mountPath": "/data", "subPath": path}
    pod = command_pod(
        "sub", "true", container={"volumeMounts": [mount]}, volumes=[{"name": "v", "emptyDir": {}}]
    )
    access = scene.node.cluster.access
    code, answer = access.request("POST", "/api/v1/namespaces/default/pods", pod)
    assert code == 422, answer
    assert "subPath" in answer["message"]


@pytest.mark.parametrize("target", ["/", "/etc", "..", "../../../.."])
def test_a_link_in_a_volume_does_not_lead_out_of_it(scene: Scene, target: str) -> None:
    """One container plants it, the next one has it mounted by the agent."""
    name = f"link-{target.replace('/', 's').replace('.', 'd')}"
    whole = {"name": "v", "mountPath": "/data"}
    part = {"name": "v", "mountPath": "/part", "subPath": "evil"}
    plant = {
        "name": "plant",
        "image": "a",
        "command": ["ln", "-s", target, "/data/evil"],
        "volumeMounts": [whole],
    }
    own = {"volumeMounts": [part]}
    pod = command_pod(
        name,
        *("touch", "/part/probe"),
        container=own,
        initContainers=[plant],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    scene.node.cluster.create(pod)
    found = scene.node.cluster.wait_for(name, _why_waiting)
    assert "failed to prepare subPath" in _why_waiting(found)
    assert not any(Path(path, "probe").exists() for path in ("/", "/etc"))


def _why_waiting(pod: Document) -> str:
    """Why its container was not started, once that was tried."""
    for status in pod["status"].get("containerStatuses") or ():
        waiting = status["state"].get("waiting", {})
        if waiting.get("reason") not in ("PodInitializing", "ContainerCreating", None):
            return str(waiting.get("message", ""))
    return ""


def _on_host(name: str, path: str, script: str, **mount: object) -> Document:
    mounts = [{"name": "h", "mountPath": "/host", **mount}]
    return command_pod(
        name,
        *("sh", "-c", script),
        container={"volumeMounts": mounts},
        volumes=[{"name": "h", "hostPath": {"path": path}}],
        restartPolicy="Never",
    )
