"""Two observers with one Lease, of which the one that notifies is killed at random moments.

Every alert is notified, and at most once more per kill, under the same deduplication key. Pods get
and lose a label all the time; each pod is an alert of its own. OBSERVER_KILLS=50 takes ten minutes.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate, pairwise
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from podstatus.testing.apiserver import ApiAccess, ApiServerProcess
from tests.support.data.deployment_pods import pod
from tests.support.processes.agent_process import get_alerts, until
from tests.support.processes.observer_process import ObserverProcess, observer

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("OBSERVER_KILLS", "3"))
SEED = int(os.environ.get("OBSERVER_SEED", "7"))
MIN_SECONDS = 1.0
"""An alert that is over before it was sent is not sent, as with one observer."""
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
TIMING = (
    "--leader-elect",
    *("--leader-elect-lease-duration", "2s"),
    *("--leader-elect-renew-deadline", "1200ms"),
    *("--leader-elect-retry-period", "300ms"),
    *("--leader-elect-resource-namespace", "default"),
)
RULES = """
rules:
- name: Marked
  expr: '"marked" in pod.labels'
  actions: [{{webhook: {{url: "{url}"}}}}]
"""


class Received(msgspec.Struct, frozen=True):
    """A notification."""

    key: str
    pod: str
    state: str
    sender: str
    """Host and port of the observer."""


class Hook(ThreadingHTTPServer):
    """Receives notifications, slowly, so that kills fall into one."""

    daemon_threads = True

    def __init__(self) -> None:
        self.received: list[Received] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
        sender = urlsplit(body["link"]).netloc
        name = body["subject"]["name"]
        self.server.received.append(Received(body["dedupKey"], name, body["state"], sender))
        time.sleep(0.005)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def a_hook() -> Iterator[Hook]:
    hook = Hook()
    thread = threading.Thread(target=hook.serve_forever)
    thread.start()
    try:
        yield hook
    finally:
        hook.shutdown()
        thread.join()
        hook.server_close()


class Marker:
    """Marks new pods and removes old marks, all the time, in a thread."""

    def __init__(self, access: ApiAccess, seed: int) -> None:
        self._access = access
        self._random = random.Random(seed)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.created = 0
        self.marked: set[str] = set()
        self.unmarked: dict[str, float] = {}
        """Pod name -> for how many seconds it was marked."""
        self._since: dict[str, float] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._random.uniform(0.02, 0.3)):
            now = time.monotonic()
            old = [name for name in sorted(self.marked) if now - self._since[name] > MIN_SECONDS]
            if not old or (self._random.random() < 0.5 and len(self.marked) < 30):
                self._mark_new()
            else:
                self._unmark(self._random.choice(old))

    def _mark_new(self) -> None:
        body = pod(self.created, nodes=3)
        self.created += 1
        body["metadata"]["labels"]["marked"] = "yes"
        code, answer = self._access.request("POST", PODS, body)
        assert code == 201, answer
        self.marked.add(body["metadata"]["name"])
        self._since[body["metadata"]["name"]] = time.monotonic()

    def _unmark(self, name: str) -> None:
        patch = {"metadata": {"labels": {"marked": None}}}
        code, answer = self._access.request("PATCH", f"{PODS}/{name}", patch, MERGE)
        assert code == 200, answer
        self.marked.remove(name)
        self.unmarked[name] = time.monotonic() - self._since[name]


def leads(looks_on: ObserverProcess) -> bool:
    return 'leader_election_master_status{name="podstatus-observer"} 1' in looks_on.ask_text(
        "/metrics"
    )


def the_leader(pair: list[ObserverProcess]) -> ObserverProcess:
    return until(lambda: next(filter(leads, pair), None))


def check(hook: Hook, marker: Marker, ends: int) -> str:
    """Compare what was sent with what happened; return a summary."""
    counts = Counter((it.pod, it.state) for it in hook.received)
    keys = {(it.pod, it.key) for it in hook.received}
    assert len({name for name, _ in keys}) == len(keys), "an alert has two keys"
    for name in marker.marked:
        assert counts[name, "firing"], f"{name} was not notified"
    resolved_only = 0
    for name, seconds in marker.unmarked.items():
        states = {state for state in ("firing", "resolved") if counts[name, state]}
        assert "resolved" in states, f"{name}, marked for {seconds:.1f} s, has {states}"
        resolved_only += not counts[name, "firing"]
    again = {key: count - 1 for key, count in counts.items() if count > 1}
    changes = [one.sender != other.sender for one, other in pairwise(hook.received)]
    assert sum(changes) <= ends, "two notified at once"
    terms = accumulate(changes, initial=0)
    by_term = Counter(
        (it.pod, it.state, term) for it, term in zip(hook.received, terms, strict=True)
    )
    assert set(by_term.values()) == {1}, "a leader repeated what it had sent"
    return (
        f"{ends} kills, {marker.created} alerts, {len(hook.received)} messages, "
        f"{sum(again.values())} repeated, at most {max(again.values(), default=0)} times; "
        f"{resolved_only} were over before another took over"
    )


@pytest.fixture
def access(tmp_path: Path) -> Iterator[ApiAccess]:
    server = ApiServerProcess(tmp_path / "server")
    try:
        yield server.start()
    finally:
        server.stop()


def test_the_other_notifies_when_one_is_killed(tmp_path: Path, access: ApiAccess) -> None:
    chance = random.Random(SEED)
    with a_hook() as hook, ExitStack() as stack:
        pair = two_observers(stack, tmp_path, access, hook, *TIMING)
        for looks_on in pair:
            looks_on.start()
        marker = Marker(access, SEED)
        marker.start()
        stack.callback(marker.stop)
        for kill in range(KILLS):
            leader = the_leader(pair)
            time.sleep(chance.uniform(0.0, 2.0))
            if kill % 10 == 1:
                hold(leader, 3.0)
            else:
                os.kill(leader.pid, signal.SIGKILL)
                leader.wait()
                # Sometimes it is back before another one leads.
                time.sleep(chance.uniform(0.0, 3.0))
                leader.start()
        the_leader(pair)
        marker.stop()
        until(lambda: is_quiet(hook))
        print(check(hook, marker, KILLS))  # noqa: T201


def two_observers(
    stack: ExitStack, folder: Path, access: ApiAccess, hook: Hook, *options: str
) -> list[ObserverProcess]:
    """Not started yet."""
    rules = folder / "rules.yaml"
    rules.write_text(RULES.format(url=hook.url))
    given = ("--alert-rules", str(rules), *options)
    folders = [folder / name for name in ("one", "other")]
    for it in folders:
        it.mkdir()
    return [stack.enter_context(observer(it, access.kubeconfig, *given)) for it in folders]


def hold(looks_on: ObserverProcess, seconds: float) -> None:
    """Let it do nothing, for longer than its Lease lasts."""
    with looks_on.standing_still():
        time.sleep(seconds)


def shows_marked(looks_on: ObserverProcess) -> bool:
    """Whether the command shows the alert: both observers do, whichever notifies."""
    return get_alerts(looks_on).get("Marked", {}).get("state") == "firing"


def is_quiet(hook: Hook) -> bool:
    before = len(hook.received)
    time.sleep(2.0)
    return len(hook.received) == before


def test_an_orderly_stop_hands_over_at_once(tmp_path: Path, access: ApiAccess) -> None:
    with a_hook() as hook, ExitStack() as stack:
        # With the usual timing, another one would wait for 15 s.
        one, other = two_observers(stack, tmp_path, access, hook, TIMING[0], *TIMING[-2:])
        one.start()
        until(lambda: leads(one))
        other.start()
        assert not leads(other)
        body = pod(0)
        body["metadata"]["labels"]["marked"] = "yes"
        access.request("POST", PODS, body)
        for looks_on in (one, other):
            until(partial(shows_marked, looks_on), looks_on.log)
        began = time.monotonic()
        assert one.stop() == 0
        until(lambda: leads(other))
        assert time.monotonic() - began < 12
        code, lease = access.request(
            "GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/podstatus-observer"
        )
        assert (code, lease["spec"]["leaseTransitions"]) == (200, 1)
