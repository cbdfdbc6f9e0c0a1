"""A dispatcher is killed repeatedly: no alert is lost, and hardly one is sent twice."""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

KILLS = 12

pytestmark = pytest.mark.slow


class Hook(ThreadingHTTPServer):
    """Counts requests, slowly, so that kills fall into one."""

    daemon_threads = True

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received[self.headers["webhook-id"]] += 1
        time.sleep(0.001)
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


def words(path: Path, hook: Hook, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.alerts.delivery.deliver_until_killed",
        str(path),
        hook.url,
        *more,
    ]


def kept_until_killed(path: Path, hook: Hook, first: int, seconds: float) -> list[int]:
    """Return the numbers of the alerts on disk when it was killed."""
    given = words(path, hook, str(first))
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines.append(process.stdout.readline())
        process.kill()
        lines += process.stdout.read().splitlines(keepends=True)
    return [int(line.split()[1]) for line in lines if line.endswith("\n")]


def test_no_alert_is_lost_and_only_those_in_flight_are_sent_twice(tmp_path: Path) -> None:
    path, chance, kept = tmp_path / "alerts.db", random.Random(7), [-1]
    with a_hook() as hook:
        for _ in range(KILLS):
            # One more than it reported may have been sent before it could report it.
            kept += kept_until_killed(path, hook, kept[-1] + 2, chance.uniform(0.05, 0.5))
        subprocess.run(words(path, hook, "0", "drain"), check=True, timeout=60)
    fires = {id_.removesuffix("-firing") for id_ in hook.received if id_.endswith("-firing")}
    ends = {id_.removesuffix("-resolved") for id_ in hook.received if id_.endswith("-resolved")}
    forever = {f"CrashLoop-{number}-1" for number in kept[1:] if number % 3 == 0}
    # Firing alerts have been sent, and the resolutions of all that were sent before.
    assert forever <= fires
    assert {id_ for id_ in fires if int(id_.split("-")[1]) % 3} <= ends
    assert not any(int(id_.split("-")[1]) % 3 == 0 for id_ in ends)
    again = sum(count - 1 for count in hook.received.values())
    print(f"{KILLS} kills, {len(kept) - 1} alerts, {again} sent twice")  # noqa: T201
    assert again <= KILLS
    assert max(hook.received.values()) <= 3
