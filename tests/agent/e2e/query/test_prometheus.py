"""A real Prometheus scrapes a real agent over HTTPS, with its token and its certificate."""

import json
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podstatus.testing.servers.free_port import free_port
from tests.support.processes.agent_process import AgentProcess, Document, agent, get_plain, until

PROMETHEUS = shutil.which("prometheus")
PAGES = ("/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/resource", "/metrics/slis")
OTHER = "not-the-agents-own"  # a token, which must not be in any log
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not there; install it"),
]


def a_process(name: str, command: str, **fields: Any) -> Document:
    container = {"name": "app", "image": "none", "command": ["sh", "-c", command], **fields}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


class Prometheus:
    """Scrapes all pages of an agent every few seconds: a busy machine may take one for a page."""

    def __init__(self, folder: Path, node: AgentProcess, token: str) -> None:
        self._address = f"127.0.0.1:{free_port()}"
        endpoints = node.wait_serving()
        scrape = {
            "scheme": "https",
            "tls_config": {"ca_file": endpoints["agent_certificate"]},
            "authorization": {"credentials": token or endpoints["token"]},
            "static_configs": [{"targets": [endpoints["agent"].removeprefix("https://")]}],
        }
        jobs = [{"job_name": page, "metrics_path": page, **scrape} for page in PAGES]
        config = folder / "prometheus.yml"
        asked = {"scrape_interval": "4s", "scrape_timeout": "4s"}
        config.write_text(json.dumps({"global": asked, "scrape_configs": jobs}))
        self._log = (folder / "prometheus.log").open("wb")
        self.process = subprocess.Popen(
            [
                str(PROMETHEUS),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={self._address}",
            ],
            stdout=self._log,
            stderr=self._log,
        )

    def ask(self, query: str) -> list[Any]:
        """What a query finds: labels and value."""
        asked = urllib.parse.urlencode({"query": query})
        code, text = get_plain(f"http://{self._address}/api/v1/query?{asked}")
        if code != 200:  # it is not there yet
            return []
        found: list[Any] = json.loads(text)["data"]["result"]
        return found

    def value(self, query: str) -> float | None:
        """The only value that a query finds, if there is one."""
        found = self.ask(query)
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()


@contextmanager
def watching(folder: Path, node: AgentProcess, token: str = "") -> Iterator[Prometheus]:
    made = Prometheus(folder, node, token)
    try:
        yield made
    finally:
        made.close()


def test_prometheus_scrapes_all_pages_and_answers_queries(tmp_path: Path) -> None:
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    with agent(tmp_path / "agent", "--runtime", "process", "--no-samples") as node:
        cluster = node.start_ready()
        cluster.create(
            a_process("web", "sleep 1000", readinessProbe=probe), a_process("worse", "exit 3")
        )
        cluster.wait_ready("web")
        with watching(tmp_path, node) as prometheus:

            def becomes(query: str, value: float) -> None:
                until(lambda: prometheus.value(query) == value, lambda: prometheus.ask(query))

            # All five are up, and everything that they said was taken.
            becomes("sum(up)", len(PAGES))
            becomes(f'kubelet_node_name{{node="{node.node}"}}', 1)
            becomes("sum(kubelet_desired_pods)", 2)
            becomes('podstatus_pod_health{health="healthy"}', 1)
            ends = 'kubelet_terminated_containers_total{exit_code="3",reason="Error"}'
            until(lambda: (prometheus.value(ends) or 0) >= 2)
            until(lambda: (prometheus.value("prober_probe_total") or 0) >= 3)
            sync = "histogram_quantile(0.99, kubelet_pod_status_sync_duration_seconds_bucket)"
            until(lambda: 0 < (prometheus.value(sync) or 0) <= 60)
            page = 'container!="",job="/metrics/cadvisor"'
            memory = f'container_memory_working_set_bytes{{pod="web",{page}}}'
            until(lambda: (prometheus.value(memory) or 0) > 0)
            until(lambda: (prometheus.value('pod_cpu_usage_seconds_total{pod="web"}') or -1) >= 0)
            becomes("sum(kubernetes_healthcheck == 0) or vector(0)", 0)
            # What goes is not kept: the series of the pod end with it.
            cluster.delete("web")
            cluster.wait_gone("web")
            until(lambda: prometheus.ask('prober_probe_total{pod="web"}') == [])
        cluster.delete("worse")
        cluster.wait_gone("worse")


def test_who_has_another_token_gets_nothing(tmp_path: Path) -> None:
    with agent(tmp_path / "agent") as node:
        node.start_ready()
        with watching(tmp_path, node, token=OTHER) as prometheus:
            until(lambda: prometheus.value("count(up == 0)") == len(PAGES))
            assert OTHER not in node.log()
