"""The freshness that an observer reports, in virtual time."""

import asyncio
from collections import defaultdict
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from podstatus.agent.compose.history import HistoryFile
from podstatus.agent.observer.cluster_view import ClusterStatusView, ClusterView, ObserverScope
from podstatus.agent.observer.settings import load_observe_settings
from podstatus.client.rest.resources import ApiResource
from podstatus.client.rest.server_health import ServerHealth
from podstatus.kube.api_errors import DeniedError
from podstatus.node.decide.measured_usage import MeasuredUsage
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.support.fake_source import FakeSource, FakeStream

DENIED = DeniedError("pods is forbidden", code=403)


class FakeCluster:
    """A server for each resource."""

    def __init__(self) -> None:
        self.of = defaultdict[str, FakeSource](FakeSource)

    async def list(self, resource: ApiResource, **asked: Any) -> bytes:
        return await self.of[resource.plural].list(resource, **asked)

    def watch(self, resource: ApiResource, **asked: Any) -> AbstractAsyncContextManager[FakeStream]:
        return self.of[resource.plural].watch(resource, **asked)


async def test_a_server_that_answers_but_does_not_show_pods_is_not_there(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    flags: dict[str, str | None] = {"kubeconfig": str(kubeconfig), "history": "false"}
    settings = load_observe_settings(flags, {}, {}).settings

    async with asyncio.timeout(30):
        clock, cluster = FakeClock(), FakeCluster()
        contact = ServerHealth(clock)
        history = HistoryFile(
            settings, tmp_path, lambda store: StatusHistoryWriter(store, clock=clock)
        )
        view = ClusterView(
            cluster, ObserverScope(), SnapshotCache(), clock=clock, history_writer=None
        )
        known = ClusterStatusView(
            view,
            server_health=contact,
            history=history,
            usage=lambda _: MeasuredUsage(),
            clock=clock,
        )
        contact.record_response()
        assert not known.freshness().server_reachable
        task = asyncio.ensure_future(view.pods.run())
        await run_ready_tasks()
        assert known.freshness().server_reachable
        cluster.of["pods"].list_errors.extend([DENIED] * 100)
        cluster.of["pods"].watch_errors.extend([DENIED] * 100)
        cluster.of["pods"].stream.end(DENIED)
        await run_ready_tasks()
        await clock.advance(40)
        contact.record_response()
        assert not known.freshness().server_reachable
        assert known.freshness().server_age_seconds >= 40
        cluster.of["pods"].list_errors.clear()
        cluster.of["pods"].watch_errors.clear()
        await clock.advance(40)
        contact.record_response()
        assert known.freshness().server_reachable
        assert known.freshness().server_age_seconds == 0
        task.cancel()
        await asyncio.wait({task})


def renew(cluster: FakeCluster, node: str, at: str) -> None:
    metadata = {"name": node, "namespace": "kube-node-lease", "uid": f"lease-of-{node}"}
    cluster.of["leases"].put(node, metadata=metadata, spec={"renewTime": at})


async def test_the_age_of_a_lease_does_not_depend_on_the_time_that_is_set() -> None:
    async def play() -> None:
        clock, cluster = FakeClock("2100-01-01T00:00:00Z"), FakeCluster()
        view = ClusterView(
            cluster, ObserverScope(), SnapshotCache(), clock=clock, history_writer=None
        )

        async def confirm(other: str = "n2") -> None:
            renew(cluster, other, f"2100-01-01T00:00:00.{clock.monotonic() % 10**6:06}Z")
            await run_ready_tasks()

        renew(cluster, "n1", "2099-12-31T23:59:55.000000Z")
        task = asyncio.ensure_future(view.leases.run())
        await run_ready_tasks()
        assert view.lease_age("n1") == 5
        clock.step(864_000)
        await clock.advance(2)
        await confirm()
        assert view.lease_age("n1") == 7
        # Its node's clock is 10 days behind ours now.
        renew(cluster, "n1", "2100-01-01T00:00:02.000000Z")
        await run_ready_tasks()
        assert view.lease_age("n1") == 0
        clock.step(-2 * 864_000)
        await clock.advance(3)
        await confirm("n3")
        assert view.lease_age("n1") == 3
        cluster.of["leases"].delete("n1")
        await run_ready_tasks()
        assert view.lease_age("n1") is None
        task.cancel()
        await asyncio.wait({task})

    await asyncio.wait_for(play(), 30)


async def test_no_lease_is_late_because_the_server_delivers_no_renewals() -> None:
    clock, cluster = FakeClock("2100-01-01T00:00:00Z"), FakeCluster()
    view = ClusterView(cluster, ObserverScope(), SnapshotCache(), clock=clock, history_writer=None)
    renew(cluster, "n1", "2100-01-01T00:00:00.000000Z")
    renew(cluster, "n2", "2100-01-01T00:00:00.000000Z")
    task = asyncio.ensure_future(view.leases.run())
    async with asyncio.timeout(30):
        await clock.advance(8)
        renew(cluster, "n2", "2100-01-01T00:00:08.000000Z")
        await clock.advance(60)
        assert (view.lease_age("n1"), view.lease_age("n2")) == (8, 0)
        renew(cluster, "n2", "2100-01-01T00:01:08.000000Z")
        await clock.advance(1)
        assert (view.lease_age("n1"), view.lease_age("n2")) == (68, 0)
    task.cancel()
    await asyncio.wait({task})
