"""Hostile pods, manifests and rules delay neither other pods nor the end of the agent.

Each case is what a user who may create pods, or the author of a file that the administrator named,
can send within the limits of the API server.
"""

import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.processes.agent_process import Document, has_phase
from tests.support.processes.process_node import (
    ProcessNode,
    command_pod,
    need_bubblewrap,
    process_node,
)

pytestmark = pytest.mark.slow

STOP_SECONDS = 5.0
"""From SIGTERM to exit; what README and the threat model promise."""
MAX_SILENCE_SECONDS = 3.0
"""Of `/healthz`, on a machine that runs other tests too; without the limits it was 5 to 60."""
MAX_MEMORY = 400 << 20
"""An idle agent has 100 MiB."""
KEYS = 60_000
"""Of one configMap below the API server's limit on bodies."""


class Attack(NamedTuple):
    """Files in place before the start, with the flags that name them; then objects to create."""

    prepare: Callable[[Path], list[str]] = lambda _: []
    create: Callable[[ProcessNode], None] = lambda _: None


def giant_pod(node: ProcessNode) -> None:
    """One request below 3 MiB."""
    containers = [{"name": f"c{number}", "image": "a"} for number in range(60_000)]
    offer(node, "pods", {**command_pod("giant", "true"), "spec": {"containers": containers}})


def doubling_variables(node: ProcessNode) -> None:
    """1 kB of spec that stands for 1 GiB."""
    doubled = [{"name": f"A{n}", "value": f"$(A{n - 1})$(A{n - 1})"} for n in range(1, 31)]
    env = [{"name": "A0", "value": "x"}, *doubled]
    offer(node, "pods", command_pod("doubling", "sleep", "1000", container={"env": env}))


def many_keys(node: ProcessNode) -> None:
    """Four volumes of one configMap with as many keys as it can have."""
    data = {f"k{number}": "" for number in range(KEYS)}
    offer(node, "configmaps", {"metadata": {"name": "keys"}, "data": data})
    volumes = [{"name": f"v{n}", "configMap": {"name": "keys"}} for n in range(4)]
    mounts = [{"name": f"v{n}", "mountPath": f"/v{n}"} for n in range(4)]
    container = {"volumeMounts": mounts}
    offer(node, "pods", command_pod("keys", "sleep", "1000", container=container, volumes=volumes))


def duplicate_keys(folder: Path) -> list[str]:
    """A static pod's manifest with 150,000 keys, each twice."""
    manifests = folder / "manifests"
    manifests.mkdir()
    pairs = ",".join(f'"k{number}":"","k{number}":""' for number in range(150_000))
    (manifests / "pod.json").write_text(f'{{"metadata":{{"annotations":{{{pairs}}}}}}}')
    return ["--pod-manifest-path", str(manifests)]


def costly_patterns(folder: Path) -> list[str]:
    """999 rules, each with a pattern that takes long to compile."""
    return rules_file(folder, *["pod.name.matches('a{1,900}')"] * 999)


def nested_patterns(folder: Path) -> list[str]:
    """One short rule whose patterns are made while it is evaluated."""
    numbers = "[1,2,3,4,5,6,7,8,9,0]"
    nest = "".join(f"{numbers}.all(v{n}, " for n in range(6))
    return rules_file(folder, f"{nest}'aaaa'.matches(pod.name + '(a{{1,900}})*'){')' * 6}")


def rules_file(folder: Path, *expressions: str) -> list[str]:
    rules = [{"name": f"Rule{n}", "expr": text} for n, text in enumerate(expressions)]
    path = folder / "rules.yaml"
    path.write_text(json.dumps({"rules": rules}))
    return ["--alert-rules", str(path)]


ATTACKS = {
    "60,000 containers": Attack(create=giant_pod),
    "doubling variables": Attack(create=doubling_variables),
    "60,000 keys in 4 volumes": Attack(create=many_keys),
    "duplicate keys in a manifest": Attack(prepare=duplicate_keys),
    "costly patterns in 999 rules": Attack(prepare=costly_patterns),
    "nested patterns in one rule": Attack(prepare=nested_patterns),
}


def offer(node: ProcessNode, resource: str, body: Document) -> None:
    """Create it, if the API server accepts it: a refusal ends the attack there."""
    path = f"/api/v1/namespaces/default/{resource}"
    code, answer = node.cluster.access.request("POST", path, body)
    assert code in (201, 400, 413, 422), answer


@contextmanager
def longest_silence(node: ProcessNode) -> Iterator[Callable[[], float]]:
    """How long the slowest answer of `/healthz` took, asked all the time."""
    slowest, ended = [0.0], threading.Event()

    def ask() -> None:
        while not ended.is_set():
            since = time.monotonic()
            node.health()
            slowest[0] = max(slowest[0], time.monotonic() - since)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield lambda: slowest[0]
    finally:
        ended.set()
        asking.join()


def peak_memory(node: ProcessNode) -> int:
    """Bytes, of the largest process of the agent."""
    return max(_peak(process.pid) for process in node.family())


def _peak(pid: int) -> int:
    """Bytes; 0 for a process that has ended, which has no memory."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    peak = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return int(peak[1]) * 1024 if peak else 0


@pytest.mark.parametrize("name", ATTACKS)
def test_neither_loop_nor_memory_nor_stop_suffers_from_an_attack(name: str, tmp_path: Path) -> None:
    need_bubblewrap()
    attack = ATTACKS[name]
    with process_node(*attack.prepare(tmp_path), isolation="bubblewrap") as node:
        node.start()
        node.wait_serving()
        with longest_silence(node) as silence:
            attack.create(node)
            node.cluster.create(command_pod("other", "sleep", "1000"))
            node.cluster.wait_for("other", has_phase("Running"))
            assert silence() < MAX_SILENCE_SECONDS
        assert peak_memory(node) < MAX_MEMORY
        since = time.monotonic()
        assert node.stop(signal.SIGTERM) == 0
        assert time.monotonic() - since < STOP_SECONDS
