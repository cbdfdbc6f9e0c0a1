"""Thousands of connections to each port of an agent that may have 1024 descriptors open."""

import http.client
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.agent.e2e.security.hold_connections import trusting_context
from tests.support.processes.agent_process import Cluster, Document, has_phase
from tests.support.processes.process_node import ProcessNode, command_pod, process_node

ROOT = Path(__file__).parents[4]
DESCRIPTORS = 1024
CONNECTIONS = 5000
PATHS = {"apiserver": "/api/v1/namespaces", "agent": "/configz", "health": "/healthz"}


class Bounds(msgspec.Struct, frozen=True):
    """What has to hold during a flood."""

    seconds: float
    """How long it lasts."""
    answer: float
    pod: float
    stop: float
    log_bytes: int = 10**6


SHORT = Bounds(seconds=8, answer=10, pod=30, stop=15)
"""For machines that have other things to do; lockouts last as long as the flood."""
PROMISED = Bounds(seconds=60, answer=1, pod=5, stop=5)


@contextmanager
def flood(port: int, seconds: float, what: str) -> Iterator[None]:
    words = (port, CONNECTIONS, seconds + 60, what)
    command = [sys.executable, "-m", "tests.agent.e2e.security.hold_connections", *map(str, words)]
    with subprocess.Popen(command, cwd=ROOT) as attacker:
        try:
            yield
        finally:
            attacker.kill()


def ask(url: str, path: str, token: str) -> float:
    """How many seconds it takes until the owner is answered."""
    began = time.monotonic()
    where = urlsplit(url)
    host, port = where.hostname or "", where.port
    connection = (
        http.client.HTTPSConnection(host, port, context=trusting_context())
        if where.scheme == "https"
        else http.client.HTTPConnection(host, port)
    )
    connection.timeout = 30
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().status == 200
    finally:
        connection.close()
    return time.monotonic() - began


def ask_for(seconds: float, listening: Document) -> dict[str, float]:
    """Ask each port again and again; the slowest answers."""
    slowest, end = dict.fromkeys(PATHS, 0.0), time.monotonic() + seconds
    while time.monotonic() < end:
        for name, path in PATHS.items():
            took = ask(listening[name], path, listening["token"])
            slowest[name] = max(slowest[name], took)
        time.sleep(0.2)
    return slowest


def start_pod(cluster: Cluster) -> float:
    """How many seconds it takes until a new pod runs."""
    began = time.monotonic()
    cluster.create(command_pod("new", "sleep", "1000"))
    cluster.wait_for("new", has_phase("Running"))
    return time.monotonic() - began


def log_bytes(node: ProcessNode) -> int:
    logs = [node.folder / "agent.log", *node.root_dir.glob("*.log*"), *node.root_dir.glob("logs/*")]
    return sum(log.stat().st_size for log in logs)


def start_limited(node: ProcessNode) -> Document:
    """Start it with few descriptors; where it listens."""
    limited = f'ulimit -n {DESCRIPTORS}; exec "$@"'
    node.words = ["/bin/sh", "-c", limited, "sh", *node.words]
    node.start_ready()
    return node.wait_serving()


def withstand(what: str, bounds: Bounds) -> str:
    """Flood all ports of an agent; what was measured."""
    with process_node(isolation="none") as node, ExitStack() as floods:
        listening = start_limited(node)
        before = log_bytes(node)
        for name in PATHS:
            port = urlsplit(listening[name]).port
            assert port is not None
            heard = "plain" if name == "health" and what != "silent" else what
            floods.enter_context(flood(port, bounds.seconds, heard))
        # Asked from the first connection on: most of them are opened in the first seconds.
        with ThreadPoolExecutor() as threads:
            asking = threads.submit(ask_for, bounds.seconds, listening)
            pod = start_pod(node.cluster)
        slowest = asking.result()
        stopped = time.monotonic()
        assert node.stop() == 0
        stop = time.monotonic() - stopped
        grown = log_bytes(node) - before
        log = node.log()[-2000:]
    assert max(slowest.values()) <= bounds.answer, (slowest, log)
    assert pod <= bounds.pod, log
    assert stop <= bounds.stop, log
    assert grown <= bounds.log_bytes, log
    answers = " ".join(f"{name}={seconds:.3f}s" for name, seconds in slowest.items())
    return f"slowest answers {answers}, pod {pod:.2f}s, SIGTERM {stop:.2f}s, logs {grown} bytes"


@pytest.mark.slow
def test_silent_connections_hold_up_neither_the_owner_nor_a_pod() -> None:
    withstand("silent", SHORT)


@pytest.mark.long
@pytest.mark.parametrize("what", ["silent", "byte", "hello"])
def test_what_is_promised_holds_for_a_minute(what: str) -> None:
    measured = withstand(what, PROMISED)
    print(f"\n{CONNECTIONS} connections to each port, {what}: {measured}")  # noqa: T201 - figures
