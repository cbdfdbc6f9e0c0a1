"""A whole agent and a real Alertmanager: however the agent ends, each alert is sent once.

Rules select pods by labels, so that the test decides when alerts fire: while the agent runs,
while it waits for a `for`, and while it is away.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.agent_process import Cluster, agent, get_alerts, make_pod, until
from tests.support.processes.alertmanager import MISSING, PROGRAM, Alertmanager, alertmanager
from tests.support.processes.api_servers import NODES, Server

NODE = NODES[0]
RULES = """
rules:
- name: Bad
  expr: '"bad" in pod.labels'
  annotations: {summary: '{{ pod.name }} is bad'}
- name: BadForLong
  expr: '"bad-for-long" in pod.labels'
  for: 30s
"""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason=MISSING)]


@pytest.fixture
def cluster(each_server: Server) -> Iterator[Cluster]:
    """A namespace whose pods go with the test: on either server there is one node for all."""
    yield Cluster(each_server.access, NODE, each_server.new_namespace())
    each_server.forget_node(NODE)


class Story:
    """Pods with labels that the test changes, and the notifications of a webhook."""

    def __init__(self, cluster: Cluster, manager: Alertmanager) -> None:
        self._cluster = cluster
        self._manager = manager

    def create(self, *names: str) -> None:
        self._cluster.create(*(make_pod(name, node=NODE) for name in names))
        self._cluster.wait_ready(*names)

    def label(self, name: str, label: str) -> None:
        self._patch(name, {label: ""})

    def take_away(self, name: str, label: str) -> None:
        self._patch(name, {label: None})

    def notifications(self) -> dict[str, list[str]]:
        """Pod name -> states of its notifications, in order."""
        found: dict[str, list[str]] = {}
        for labels, state in self._manager.told:
            if labels["alertname"].startswith("Bad"):
                found.setdefault(labels["pod"], []).append(state)
        return found

    def hears(self, **states: str) -> None:
        """Wait until exactly these notifications have arrived."""
        wanted = {name: said.split() for name, said in states.items()}
        until(lambda: self.notifications() == wanted, self.notifications)

    def _patch(self, name: str, labels: dict[str, str | None]) -> None:
        path = f"/api/v1/namespaces/{self._cluster.namespace}/pods/{name}"
        kind = "application/merge-patch+json"
        code, answer = self._cluster.access.request(
            "PATCH", path, {"metadata": {"labels": labels}}, kind
        )
        assert code == 200, answer


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_over_a_restart_each_alert_is_sent_once_firing_and_once_resolved(
    cluster: Cluster, each_server: Server, tmp_path: Path, end: str
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    with alertmanager(tmp_path) as manager:
        options = ("--alert-rules", str(rules), "--alertmanager-url", manager.url)
        story = Story(cluster, manager)
        with agent(
            tmp_path / "agent", *options, kubeconfig=each_server.access.kubeconfig, node=NODE
        ) as made:
            made.start()
            made.wait_ready(cluster)
            story.create("stays", "ends", "waits", "begins", "well")
            story.label("stays", "bad")
            story.label("ends", "bad")
            story.hears(stays="firing", ends="firing")
            story.label("waits", "bad-for-long")
            until(lambda: get_alerts(made).get("BadForLong", {}).get("state") == "pending")
            if end == "stopped":
                assert made.stop() == 0
            else:
                made.kill()
            # No agent is running now.
            story.take_away("ends", "bad")
            story.label("begins", "bad")
            made.start()
            story.hears(stays="firing", ends="firing resolved", waits="firing", begins="firing")
            for name, label in (("stays", "bad"), ("waits", "bad-for-long"), ("begins", "bad")):
                story.take_away(name, label)
            over = "firing resolved"
            story.hears(stays=over, ends=over, waits=over, begins=over)
            assert not manager.alerts()
            # Later agents do not send it again.
            made.kill()
            made.start()
            made.wait_serving()
            story.label("well", "bad")
            story.hears(stays=over, ends=over, waits=over, begins=over, well="firing")
