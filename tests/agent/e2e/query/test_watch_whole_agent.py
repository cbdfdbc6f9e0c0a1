"""Many clients watch a whole agent with permanently changing pods: complete, in time, cheap.

The agent, its API server and its simulated containers are processes of their own, the clients are
in this one. Pods flip their readiness, spread over time; what happened is read from the agent's
history, which every client that looks closely has to agree with.
"""

import asyncio
import os
import random
import socket
import ssl
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from podstatus.client import PODS, ApiClient, kubeconfig_config
from podstatus.observe.history.sqlite_store import open_history_reader
from podstatus.web.watch.serve_watch import WatchLimits
from tests.support.processes.agent_process import NODE, AgentProcess, agent
from tests.web.watch.watch_clients import MAX_MEGABYTES, Client, Sleeper, Verifier

COUNT = int(os.environ.get("WATCHED_PODS", "500"))
"""Each new pod is weighed against all others: 5,000 did not run within four minutes."""
CLIENTS, VERIFYING, SECONDS, RATE = 50, 5, 40, 200
CYCLE = 2 * COUNT / RATE
"""Seconds in which a pod is ready once, and once not."""
ALONE_SECONDS = 20
SLEEP_SECONDS = WatchLimits().stall_seconds + WatchLimits().linger_seconds / 2
"""It is cut off by then, and can still hear why."""
LATEST = 5.0
"""Seconds from a change to the client, of 99 in 100: the machine is not ours alone."""
SKEW = 0.01
"""Seconds by which clocks of two processes may round."""
READY = "Ready"
Flip = tuple[float, bool]
"""When, and whether it is ready from then on."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def a_pod(number: int) -> bytes:
    """Ready for half of the cycle, which begins anywhere in it."""
    half = round(500 * CYCLE)
    first = random.Random(number).randint(1, half - 1)
    script = f"ready=+{first}ms-{half}ms+{half - first}ms*"
    probe = {"exec": {"command": ["true"]}}
    container = {"name": "app", "image": "busybox", "readinessProbe": probe}
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"web-{number}-5d9c7b8f6-x2x4z",
                "labels": {"app": f"web-{number % 50}", "pod-template-hash": "5d9c7b8f6"},
                "annotations": {"simulate.podstatus.dev/app": script},
            },
            "spec": {"nodeName": NODE, "containers": [container]},
        }
    )


class FlipVerifier(Verifier):
    """Notes every flip of every pod, and when it came."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        super().__init__(session)
        self.ready: dict[str, bool] = {}
        self.flips: defaultdict[str, list[Flip]] = defaultdict(list)

    def _pod(self, pod: dict[str, Any]) -> None:
        now, uid = time.time(), pod["uid"]
        ready = any(it["type"] == READY and it["status"] == "True" for it in pod["conditions"])
        if self.ready.get(uid, ready) is not ready:
            self.flips[uid].append((now, ready))
        self.ready[uid] = ready


class FlipSleeper(Sleeper, FlipVerifier):
    """Sleeps first."""


class Cost:
    """What a process has used."""

    def __init__(self, process: psutil.Process) -> None:
        times = process.cpu_times()
        self.at, self.cpu = time.monotonic(), times.user + times.system
        self.megabytes = process.memory_info().rss / 2**20

    def percent_since(self, other: "Cost") -> float:
        return 100 * (self.cpu - other.cpu) / (self.at - other.at)


async def test_fifty_clients_follow_the_pods_of_a_whole_agent(tmp_path: Path) -> None:
    with agent(tmp_path / "a", "--max-pods", str(COUNT), "--no-samples") as running:
        running.start_ready()
        await follow(running)


async def follow(running: AgentProcess) -> None:
    process = psutil.Process(running.endpoints()["pid"])
    began = time.monotonic()
    await start_pods(running)
    started = time.monotonic() - began
    alone = await spend(process, ALONE_SECONDS)
    async with (
        sessions(running) as session,
        sessions(running, small=True) as slow,
        asyncio.TaskGroup() as tasks,
    ):
        verifiers = [FlipVerifier(session) for _ in range(VERIFYING)]
        sleeper = FlipSleeper(slow, SLEEP_SECONDS)
        clients = [*verifiers, *(Client(session) for _ in range(CLIENTS - VERIFYING)), sleeper]
        followers = [tasks.create_task(client.run()) for client in clients]
        begin, peak = time.time(), Peak(process)
        peaks = tasks.create_task(peak.follow())
        for client in clients[:-1]:
            await client.synced.wait()
        initial = time.time() - begin
        since, sizes = time.time(), sum(client.size for client in clients)
        load = await spend(process, SECONDS)
        sent = sum(client.size for client in clients) - sizes
        last = time.time()
        await until(sleeper.synced.is_set)
        await asyncio.sleep(2 * LATEST)
        samples = await metrics(session, running)
        for task in (*followers, peaks):
            task.cancel()

    truth = flips_of(running, since, last)
    delays = [delay for it in verifiers for delay in matched(truth, it.flips)]
    flips = sum(map(len, truth.values()))
    print(  # noqa: T201 - the figures
        f"\n{COUNT} pods of a whole agent, all running after {started:.0f} s;"
        f" {CLIENTS} clients and a sleeper; {flips / (last - since):.0f} changes a second"
        f"\n  initial state to all, {sizes / 1e6:.0f} MB, in {initial:.1f} s;"
        f" then {sent / 1e6:.0f} MB in {SECONDS} s"
        f"\n  agent: {alone[1].percent_since(alone[0]):.0f} % of a core without clients,"
        f" {load[1].percent_since(load[0]):.0f} % with them"
        f"\n  memory: {alone[1].megabytes:.0f} MB without clients, {load[0].megabytes:.0f} with"
        f" them, {load[1].megabytes:.0f} after the load, {peak.megabytes:.0f} at most"
        f"\n  delay: median {1e3 * statistics.median(delays):.0f} ms,"
        f" 99 % {1e3 * statistics.quantiles(delays, n=100)[98]:.0f} ms;"
        f" {VERIFYING * flips - len(delays)} of {VERIFYING * flips} were put together with others"
        f"\n  the sleeper: {sleeper.cuts}, {sleeper.connections} connections"
        f"\n  API server: {samples['rest_client_requests_total']:.0f} requests;"
        f" watch: {samples['podstatus_watch_events_total']:.0f} events"
    )
    assert flips >= 0.8 * RATE * (last - since)
    assert [fault for it in (*verifiers, sleeper) for fault in it.faults] == []
    assert len(delays) >= 0.9 * VERIFYING * flips, "hardly any are put together"
    assert statistics.quantiles(delays, n=100)[98] < LATEST
    assert {it.connections for it in verifiers} == {1}
    stalled = (
        f"the client has read nothing for {WatchLimits().stall_seconds:g} s; reconnect to resume"
    )
    assert sleeper.cuts == [stalled]
    assert len(sleeper.ready) == COUNT
    assert samples["podstatus_watchers"] == CLIENTS + 1
    assert samples["podstatus_watch_cuts_total slow"] == 1
    # A watch costs what it may; what else grows meanwhile is the history of the agent.
    assert peak.megabytes - alone[1].megabytes < MAX_MEGABYTES * CLIENTS


def matched(truth: dict[str, list[Flip]], seen: dict[str, list[Flip]]) -> list[float]:
    """How late each flip was that a client saw.

    It fails where one came that was none, or after a newer one, and where the last is missing. Two
    that were sent together are none for the client: on a machine that others use, too, that is so.
    """
    delays = []
    for uid, flips in truth.items():
        before = -1
        for at, ready in seen[uid]:
            known = [n for n, it in enumerate(flips) if it[1] is ready and it[0] < at + SKEW]
            if known and known[-1] > before:
                before = known[-1]
                delays.append(at - flips[before][0])
        assert before == len(flips) - 1, f"{uid}: {flips[-1]} never came"
    return delays


def flips_of(running: AgentProcess, since: float, last: float) -> dict[str, list[Flip]]:
    """What the history has of the readiness of pods."""
    found: defaultdict[str, list[Flip]] = defaultdict(list)
    with open_history_reader(running.root_dir / "history.db") as history:
        id = 0
        while moments := history.entries_after(id, limit=20_000):
            id = moments[-1].id
            for moment in moments:
                change = moment.transition
                is_ready = change.kind == "condition" and change.subject == READY
                if is_ready and since <= moment.at / 1e9 < last:
                    found[moment.uid].append((moment.at / 1e9, change.after == "True"))
    return found


class Peak:
    """The most memory that a process has had."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self.megabytes = 0.0

    async def follow(self) -> None:
        while True:
            self.megabytes = max(self.megabytes, Cost(self._process).megabytes)
            await asyncio.sleep(0.5)


async def spend(process: psutil.Process, seconds: float) -> tuple[Cost, Cost]:
    """What a process has used at the beginning and at the end of such a time."""
    begin = Cost(process)
    await asyncio.sleep(seconds)
    return begin, Cost(process)


async def start_pods(running: AgentProcess) -> None:
    """Have all pods there, and running."""
    access = kubeconfig_config(running.root_dir / "kubeconfig", environment={})
    few = asyncio.Semaphore(8)
    async with ApiClient(access) as client, sessions(running) as session:

        async def create(number: int) -> None:
            async with few:
                await client.create(PODS, a_pod(number), namespace="default")

        await asyncio.gather(*map(create, range(COUNT)))
        is_up = False
        while not is_up:
            await asyncio.sleep(1)
            is_up = (await metrics(session, running)).get("podstatus_pods Running", 0) >= COUNT
        await asyncio.sleep(CYCLE / 2)  # so that each has flipped, and they are spread


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - of another task
            await asyncio.sleep(0.05)


async def metrics(session: aiohttp.ClientSession, running: AgentProcess) -> dict[str, float]:
    """The agent's, by name and their last label; without labels, the sum."""
    headers = {"Authorization": f"Bearer {running.endpoints()['token']}"}
    async with session.get("/metrics", headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        text = await answer.text()
    found: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] += sample.value
            for label in sample.labels.values():
                found[f"{sample.name} {label}"] += sample.value
    return dict(found)


@asynccontextmanager
async def sessions(
    running: AgentProcess, *, small: bool = False
) -> AsyncIterator[aiohttp.ClientSession]:
    """`small`: its kernel takes little for it, and not all there is."""

    def make_socket(info: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(info[0], info[1])
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 2**10)
        return made

    trusted = ssl.create_default_context(cafile=running.root_dir / "pki" / "agent.crt")
    factory = make_socket if small else None
    connector = aiohttp.TCPConnector(limit=0, ssl=trusted, socket_factory=factory)
    timeout = aiohttp.ClientTimeout(total=None)
    url = running.endpoints()["agent"]
    async with aiohttp.ClientSession(url, connector=connector, timeout=timeout) as session:
        yield session
