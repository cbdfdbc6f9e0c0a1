"""An observer of an agent's cluster: it measures the node as the agent does itself."""

from pathlib import Path

import pytest

from tests.support.processes.agent_process import Document, agent, until
from tests.support.processes.observer_process import observer

pytestmark = pytest.mark.slow


def test_the_load_of_a_node_comes_from_its_stats_summary(tmp_path: Path) -> None:
    with agent(tmp_path / "agent") as made:
        made.start_ready()
        kubeconfig = made.root_dir / "kubeconfig"
        with observer(tmp_path, kubeconfig, "--node-usage", "summary") as looks_on:
            looks_on.start()

            def seen() -> Document | None:
                [node] = looks_on.ask("/v1/nodes")["nodes"]
                return node if {"cpu", "disk", "inodes"} <= node["used"].keys() else None

            [own] = made.ask("/v1/nodes")["nodes"]
            found = until(seen, looks_on.log)
            assert abs(found["usedFractions"]["disk"] - own["usedFractions"]["disk"]) < 0.05
            assert abs(found["usedFractions"]["memory"] - own["usedFractions"]["memory"]) < 0.2
            assert found["load"]["inodes"]["allocatable"] == own["load"]["inodes"]["allocatable"]
