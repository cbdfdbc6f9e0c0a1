"""A real Prometheus Alertmanager on loopback, and the webhook that it tells.

Debian's `prometheus-alertmanager`, installed or merely unpacked (`dpkg -x`) and on the PATH. It
looks for its templates in /usr/share: those of an unpacked one are put there by bubblewrap, for
itself alone.
"""

import json
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from podstatus.testing.servers.free_port import free_port

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
MISSING = "prometheus-alertmanager is not there; install it"
_TEMPLATES = Path("share/prometheus/alertmanager/default.tmpl")
_SECONDS = 90.0


class Alertmanager:
    """Tells a webhook of all that it hears, at once. Made by `alertmanager`."""

    def __init__(self, folder: Path, hook: str) -> None:
        self._address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self._address}"
        self._folder = folder
        route = {"receiver": "hook", "group_by": ["..."], "group_wait": "0s"}
        route |= {"group_interval": "1s", "repeat_interval": "1h"}
        receivers = [{"name": "hook", "webhook_configs": [{"url": hook}]}]
        text = json.dumps({"route": route, "receivers": receivers})
        (folder / "alertmanager.yml").write_text(text)
        self._process: subprocess.Popen[bytes] | None = None
        self.told: list[tuple[dict[str, str], str]] = []
        """What the webhook was told: labels and state."""

    def start(self) -> None:
        """Run it, with what it knew before of what it has told."""
        words = [
            *_command(),
            f"--config.file={self._folder / 'alertmanager.yml'}",
            f"--storage.path={self._folder / 'alertmanager'}",
            f"--web.listen-address={self._address}",
            "--cluster.listen-address=",
        ]
        with (self._folder / "alertmanager.log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)
        self._wait(is_there=True)

    def kill(self) -> None:
        """End it at once; what it has been told is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self._wait(is_there=False)

    def alerts(self) -> list[dict[str, Any]]:
        """What it knows to fire, as its API tells it."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=60) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def hear(self, body: bytes) -> None:
        """The webhook was told something."""
        self.told += [(one["labels"], one["status"]) for one in json.loads(body)["alerts"]]

    def _wait(self, *, is_there: bool) -> None:
        end = time.monotonic() + _SECONDS
        while self._is_ready() != is_there:
            log = (self._folder / "alertmanager.log").read_text()
            assert time.monotonic() < end, log
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=60) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def alertmanager(folder: Path) -> Iterator[Alertmanager]:
    """One that runs, with its files in this folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hook)
    server.daemon_threads = True
    made = Alertmanager(folder, f"http://127.0.0.1:{server.server_address[1]}/")
    server.hear = made.hear  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        made.start()
        yield made
    finally:
        made.kill()
        server.shutdown()
        thread.join()
        server.server_close()


class _Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.hear(body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def _command() -> list[str]:
    program = str(PROGRAM)
    unpacked = Path(program).parents[1]
    is_installed = (Path("/usr") / _TEMPLATES).exists()
    if is_installed or not (unpacked / _TEMPLATES).exists():
        return [program]
    inside = ["--die-with-parent", "--dev-bind", "/", "/"]
    inside += ["--ro-bind", str(unpacked / "share"), "/usr/share"]
    return [shutil.which("bwrap") or "bwrap", *inside, "--", program]
