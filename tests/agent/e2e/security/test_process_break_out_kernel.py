"""No container gets out by what it asks of the kernel: every call that the profile denies, other
ABIs, cgroups, keyrings; as root and as an ordinary user, as a container and by exec.
"""

import ctypes
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from podstatus.runtime.process.cgroups.model.mounts import parse_mounts
from podstatus.runtime.process.seccomp.default_profile import Denied, decide
from podstatus.runtime.process.seccomp.syscall_numbers import ARCHITECTURES
from podstatus.runtime.process.spec.capabilities import DEFAULT
from tests.agent.e2e.security import break_out_kernel
from tests.support.break_out_table import PROPERTY, table
from tests.support.processes.process_node import (
    PYTHON,
    ProcessNode,
    command_pod,
    need_nobody,
    need_root,
    process_node,
)

pytestmark = pytest.mark.slow

NOT_ISOLATED = ("calls", "abis", "keyrings")
"""What is refused also to a process like any other."""
ALL = (*NOT_ISOLATED, "proc", "cgroups")
CGROUP_2_ALONE = """
umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"
"""
_LIMITED = {"limits": {"memory": "64Mi"}}
_FEWEST = {
    "call": 60,
    "namespace by clone": 8,
    "namespace by unshare": 7,
    "socket": 4,
    "keyring": 8,
}
_USER_KEYRING, _UNLINK = -4, 9


class Scene(NamedTuple):
    """User and isolation of the agent."""

    isolation: str
    ordinary: bool = False
    users: tuple[int | None, ...] = (None,)
    """User of the containers; None: that of the agent."""
    sections: tuple[str, ...] = ALL
    cgroup_2_alone: bool = False


SCENES = {
    "root, bubblewrap": Scene("bubblewrap", users=(None, 65534)),
    "root, bubblewrap, cgroup2 alone": Scene("bubblewrap", cgroup_2_alone=True),
    "ordinary user, bubblewrap": Scene("bubblewrap", ordinary=True),
    "root, no isolation": Scene("none", users=(None, 65534), sections=NOT_ISOLATED),
    "ordinary user, no isolation": Scene("none", ordinary=True, sections=NOT_ISOLATED),
}


class Victims(NamedTuple):
    """What a container must not reach."""

    cgroup: str
    processes: "list[subprocess.Popen[bytes]]"
    files: dict[str, str]
    key: str


class Tried(NamedTuple):
    """What came of all ways."""

    scene: Scene
    node: ProcessNode
    victims: Victims
    runs: dict[str, dict[str, str]]


@pytest.mark.parametrize("name", SCENES)
def test_no_way_leads_out(name: str, record_property: Callable[[str, Any], None]) -> None:
    """One test, not one for each question: a node and all ways take some seconds."""
    with try_all(name) as tried:
        record_property(PROPERTY, table(name, tried.runs))
        all_ways_are_refused(tried)
        all_that_is_denied_was_tried(tried)
        no_victim_was_reached(tried)
        other_abis_do_not_exist(tried)
        containers_have_a_cgroup_of_their_own(tried)
        a_pod_of_the_restricted_standard_runs(tried)
        who_is_isolated_must_be_confined(tried)


@contextmanager
def try_all(name: str) -> Iterator[Tried]:
    need_root()
    scene = SCENES[name]
    user = need_nobody() if scene.ordinary else None
    with process_node(isolation=scene.isolation, user=user) as node, victims() as aim:
        if scene.cgroup_2_alone:
            node.words = ["unshare", "-m", "sh", "-ec", CGROUP_2_ALONE, "sh", *node.words]
        node.start_ready()
        with tempfile.TemporaryDirectory(prefix="podstatus-", dir="/var/lib") as folder:
            Path(folder).chmod(0o755)
            runs = dict(_runs(node, scene, aim, Path(folder)))
        yield Tried(scene, node, aim, runs)


def _runs(
    node: ProcessNode, scene: Scene, aim: Victims, folder: Path
) -> Iterator[tuple[str, dict[str, str]]]:
    command = _command(scene, aim, folder)
    for user in scene.users:
        who = "as the agent" if user is None else f"as {user}"
        name = f"evil{user or ''}"
        context = {} if user is None else {"securityContext": {"runAsUser": user}}
        limited = {"resources": _LIMITED, **context}
        node.cluster.create(
            command_pod(name, *command, container=limited, restartPolicy="Never"),
            command_pod(f"{name}-exec", "sleep", "1000", container=limited),
        )
        yield f"container {who}", node.result(name)
        node.cluster.wait_ready(f"{name}-exec")
        said, status = node.exec(f"{name}-exec", *command)
        assert status["status"] == "Success", (said, status)
        yield f"exec {who}", json.loads(said)


def _command(scene: Scene, aim: Victims, folder: Path) -> tuple[str, ...]:
    """The script, and what it is to aim at, where every container can read them."""
    numbers = ARCHITECTURES[os.uname().machine].numbers
    # What is denied to all: without isolation root may call chroot.
    having = DEFAULT if scene.isolation == "none" else ()
    denied = [name for name in numbers if isinstance(decide(name, having), Denied)]
    given = {"numbers": numbers, "denied": denied, "sections": scene.sections, "key": aim.key}
    seen = aim.files
    if scene.cgroup_2_alone:
        seen = {name: f"/sys/fs/cgroup/{aim.cgroup}/{name}" for name in aim.files}
    given |= {"cgroup": aim.cgroup, "files": seen}
    (folder / "aim.json").write_text(json.dumps(given))
    (folder / "evil.py").write_text(Path(break_out_kernel.__file__).read_text())
    return PYTHON, "-I", f"{folder}/evil.py", f"@{folder}/aim.json"


@contextmanager
def victims() -> Iterator[Victims]:
    """A process in a cgroup of each version, and a key of root's."""
    mounts = parse_mounts(Path("/proc/self/mountinfo").read_text())
    tops = {"version 2": mounts.v2, "freezer": mounts.v1.get("freezer")}
    name = f"podstatus-victim-{os.getpid()}"
    folders = {
        kind: Path(mount.mount_point, name) for kind, mount in tops.items() if mount is not None
    }
    files = {"cgroup.kill": "version 2", "cgroup.freeze": "version 2", "freezer.state": "freezer"}
    known = {file: str(folders[kind] / file) for file, kind in files.items() if kind in folders}
    processes = [subprocess.Popen(["/bin/sleep", "1000"]) for _ in folders]
    try:
        for folder, process in zip(folders.values(), processes, strict=True):
            folder.mkdir()
            (folder / "cgroup.procs").write_text(str(process.pid))
        with _key(name):
            yield Victims(name, processes, known, name)
    finally:
        for folder, process in zip(folders.values(), processes, strict=True):
            _thaw(folder)
            process.kill()
            process.wait()
            folder.rmdir()


def _thaw(folder: Path) -> None:
    for file, text in {"freezer.state": "THAWED", "cgroup.freeze": "0"}.items():
        if (folder / file).exists():
            (folder / file).write_text(text)


@contextmanager
def _key(name: str) -> Iterator[None]:
    """A key in the user keyring of root."""
    numbers = ARCHITECTURES[os.uname().machine].numbers
    call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
    ring = ctypes.c_long(_USER_KEYRING)
    key = call(numbers["add_key"], b"user", name.encode(), b"psst", ctypes.c_long(4), ring)
    assert key > 0
    yield
    call(numbers["keyctl"], _UNLINK, ctypes.c_long(key), ring)


def all_ways_are_refused(tried: Tried) -> None:
    for run, came in tried.runs.items():
        assert {way: it for way, it in came.items() if not it.startswith("refused: ")} == {}, run


def all_that_is_denied_was_tried(tried: Tried) -> None:
    for came in tried.runs.values():
        kinds = [way.partition(":")[0] for way in came]
        counts = {kind: kinds.count(kind) for kind in _FEWEST}
        assert {kind for kind in _FEWEST if counts[kind] < _FEWEST[kind]} == set()


def no_victim_was_reached(tried: Tried) -> None:
    assert [process.poll() for process in tried.victims.processes] == [None, None]
    for name, thawed in {"freezer.state": "THAWED", "cgroup.freeze": "0"}.items():
        if path := tried.victims.files.get(name):
            assert Path(path).read_text().strip() == thawed


def other_abis_do_not_exist(tried: Tried) -> None:
    if os.uname().machine != "x86_64":
        return
    for came in tried.runs.values():
        i386 = {came[way] for way in came if way.startswith("as i386: ")}
        # Without support for it in the kernel, the instruction itself is an error.
        assert i386 in ({"refused: killed by SIGSYS"}, {"refused: killed by SIGSEGV"})
        x32 = {came[way] for way in came if way.startswith("as x32: ")}
        assert x32 == {"refused: [Errno 38] Function not implemented"}


def containers_have_a_cgroup_of_their_own(tried: Tried) -> None:
    if tried.scene.ordinary:
        return  # it makes none without Delegate=yes
    (place,) = tried.node.pod_folder("evil-exec").glob("containers/*")
    pid = json.loads((place / "started.json").read_bytes())["process"]["pid"]
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    mine = [line for line in lines if line.startswith("0:") or not tried.scene.cgroup_2_alone]
    assert mine
    assert [line for line in mine if not line.endswith(f"/{place.name}/inside")] == []


RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def a_pod_of_the_restricted_standard_runs(tried: Tried) -> None:
    user = {} if tried.scene.ordinary else {"runAsUser": 65534}
    of_pod = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    script = 'set $(grep Seccomp: /proc/self/status); echo "[$2, $(id -u)]"'
    pod = command_pod(
        "restricted",
        *("sh", "-c", script),
        container={"securityContext": {**RESTRICTED, **user}},
        securityContext=of_pod,
        restartPolicy="Never",
    )
    tried.node.cluster.create(pod)
    assert tried.node.result("restricted") == [2, 65534]


def who_is_isolated_must_be_confined(tried: Tried) -> None:
    context = {"seccompProfile": {"type": "Unconfined"}}
    script = 'set $(grep Seccomp: /proc/self/status); echo "[$2]"'
    pod = command_pod(
        "unconfined", "sh", "-c", script, securityContext=context, restartPolicy="Never"
    )
    tried.node.cluster.create(pod)
    if tried.scene.isolation == "bubblewrap":
        tried.node.cluster.wait_for_event("Failed", "unconfined", "remove it, or set RuntimeDef")
    else:
        assert tried.node.result("unconfined") == [0]
