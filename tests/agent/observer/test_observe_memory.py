"""Memory of an observer per pod of a real cluster."""

from pathlib import Path

import pytest

from podstatus.agent.observer.observer import HEAP_TRIMMED
from podstatus.client import ApiClient
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.testing.servers.binaries import MissingBinariesError, find_binaries
from podstatus.testing.servers.kube_apiserver import running_kube_apiserver
from tests.support.data import deployment_pods
from tests.support.processes.agent_process import until
from tests.support.processes.observer_process import ObserverProcess, observer

PODS = 2_000
"""Fewer than the 5,000 of decision 0033: memory that is the same for any number counts more."""
MAX_BYTES_PER_POD = 6 * 1024

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def settled(looks_on: ObserverProcess, pods: int) -> tuple[int, int]:
    """What it has in memory once it knows all of them and has noted what it saw."""

    def look() -> bool:
        status = looks_on.ask("/v1/status")
        is_noted = status["pods"] == pods and not status["history"]["waiting"]
        return is_noted and HEAP_TRIMMED in looks_on.log()

    until(look, lambda: looks_on.ask("/v1/status"))
    return looks_on.memory()


async def create(kubeconfig: Path, pods: int) -> None:
    async with ApiClient(kubeconfig_config(kubeconfig)) as client:
        await deployment_pods.create(client, "default", range(pods))


async def test_a_pod_of_a_real_cluster_takes_six_kilobytes_at_most(tmp_path: Path) -> None:
    try:
        find_binaries()
    except MissingBinariesError as error:
        pytest.skip(str(error))
    with running_kube_apiserver(tmp_path / "server") as server:
        kubeconfig = server.access.kubeconfig
        for folder in ("watched", "listed"):
            (tmp_path / folder).mkdir()
        with (
            observer(tmp_path / "watched", kubeconfig) as watched,
            observer(tmp_path / "listed", kubeconfig) as listed,
        ):
            watched.start()
            empty, peak_empty = settled(watched, 0)
            await create(kubeconfig, PODS)
            by_watch, peak_by_watch = settled(watched, PODS)
            listed.start()
            by_list, peak_by_list = settled(listed, PODS)
    figures = {
        "by watch": (by_watch - empty, peak_by_watch - peak_empty),
        "by list": (by_list - empty, peak_by_list - peak_empty),
    }
    print(f"\nwithout pods {empty / 2**20:.0f} MiB")  # noqa: T201 - what it is about
    for way, (kept, peak) in figures.items():
        print(f"{way}: {kept / PODS:.0f} bytes a pod, peak {peak / PODS:.0f}")  # noqa: T201
    assert max(kept for kept, _ in figures.values()) <= MAX_BYTES_PER_POD * PODS
