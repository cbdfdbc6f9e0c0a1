"""A fake agent without company."""

import pytest

from tests.support.processes.agent_process import ENVIRONMENT

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
"""
"""Of no server: the fake agent sends no request."""


@pytest.fixture
def alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent starts neither an API server nor a process that evaluates alert rules."""
    kubeconfig = tmp_path_factory.mktemp("kubeconfig") / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    monkeypatch.setitem(ENVIRONMENT, "PODSTATUS_KUBECONFIG", str(kubeconfig))
    monkeypatch.setitem(ENVIRONMENT, "PODSTATUS_ALERTS", "false")
    monkeypatch.setitem(ENVIRONMENT, "PODSTATUS_RUNTIME", "simulated")
