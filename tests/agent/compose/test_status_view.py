"""The status view of a whole node in this process, on an API server in memory."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.observe.history.sqlite_store import HistoryError
from podstatus.observe.ports import SupportsContainerUsage
from podstatus.testing.apiserver import ApiServerThread
from tests.agent.compose.query_scene import PODS, a_pod, ask
from tests.agent.compose.status_view_scene import SECONDS, a_node, find, is_ready, until


async def test_pods_are_on_the_board_from_their_first_sight_to_their_end(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server) as known:
        await ask(server, "POST", PODS, a_pod("web"))
        await until(lambda: is_ready(known, "web"))
        await ask(server, "PATCH", f"{PODS}/web", {"metadata": {"labels": {"new": "1"}}})
        await until(lambda: find(known, "web").labels.get("new") == "1")  # type: ignore[union-attr]
        before = known.snapshot_cache.revision
        await ask(server, "DELETE", f"{PODS}/web")
        await until(lambda: find(known, "web") is None)
        deleted = known.snapshot_cache.changed_since(before).deleted
        assert [gone.name for _, gone in deleted] == ["web"]


async def test_the_usage_of_containers_is_the_same_object_until_it_is_measured_again(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server) as known:
        assert isinstance(known, SupportsContainerUsage)
        assert known.container_usage() is known.container_usage()


async def test_a_pod_that_was_rejected_is_gone_with_its_deletion(
    tmp_path: Path, server: ApiServerThread
) -> None:
    large = a_pod("large")
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000"

    async with a_node(tmp_path, server) as known:
        await ask(server, "POST", PODS, large)
        await until(lambda: getattr(find(known, "large"), "reason", "") == "OutOfcpu")
        # At once: no worker has anything to say of it any more.
        await ask(server, "DELETE", f"{PODS}/large?gracePeriodSeconds=0")
        await until(lambda: find(known, "large") is None)


def test_what_happened_is_read_while_all_common_threads_wait(
    tmp_path: Path, server: ApiServerThread
) -> None:
    disk = threading.Event()

    async def scene() -> None:
        async with a_node(tmp_path, server) as known:
            await ask(server, "POST", PODS, a_pod("web"))
            await until(lambda: is_ready(known, "web"))
            loop = asyncio.get_running_loop()
            waiting = [loop.run_in_executor(None, disk.wait) for _ in range(40)]
            try:
                async with asyncio.timeout(60):
                    await until(lambda: known.history.counts.written > 0)
                    while not await known.history.timeline("default", "web"):
                        await SystemClock().wait(0.02)
                    assert await known.history.transitions(0, limit=10)
            finally:
                disk.set()
            await asyncio.wait(waiting)

    asyncio.run(scene())


async def test_node_sync_and_freshness_are_reported(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server) as known:
        await ask(server, "POST", PODS, a_pod("a"))
        await ask(server, "POST", PODS, a_pod("b"))
        await until(lambda: is_ready(known, "a") and is_ready(known, "b"))
        await until(lambda: known.nodes()["node"].ready)
        await until(lambda: known.nodes()["node"].lease_age_seconds is not None)
        node = known.nodes()["node"]
        assert node.pods == 2
        assert node.requested == {"cpu": "500m", "memory": "128Mi"}
        assert node.used["memory"] > 0
        assert node.conditions["Ready"] == "True"
        sync = known.sync()
        assert sync is not None
        await until(lambda: known.sync() is not None and known.sync().unsent == 0)  # type: ignore[union-attr]
        assert sync.quarantined == 0
        freshness = known.freshness()
        assert freshness.server_reachable
        assert freshness.server_age_seconds < SECONDS
        assert freshness.runtime_age_seconds is not None


async def test_the_timeline_has_transitions_and_events_in_order(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server) as known:
        await ask(server, "POST", PODS, a_pod("web"))
        await until(lambda: is_ready(known, "web"))
        await ask(server, "DELETE", f"{PODS}/web")
        await until(lambda: find(known, "web") is None)
        await until(lambda: known.history.counts.waiting == 0)
        moments = await known.history.timeline("default", "web")
        kinds = [(m.transition.kind, m.transition.after_text) for m in moments]
        assert kinds[0] == ("seen", "")
        assert kinds.index(("phase", "Running")) < kinds.index(("deletion", "30 s"))
        events = [m.transition for m in moments if m.transition.kind == "event"]
        assert {"Started", "Killing"} <= {event.reason for event in events}
        assert {event.subject for event in events if event.reason == "Started"} == {"c"}
        assert [m.at for m in moments] == sorted(m.at for m in moments)
        assert known.history.counts.by_kind["phase"] >= 2
        assert len(await known.history.transitions(moments[0].id, limit=3)) == 3
    assert oct((tmp_path / "root" / "history.db").stat().st_mode)[-3:] == "600"


async def test_a_node_runs_on_without_a_history_that_cannot_be_used(
    tmp_path: Path, server: ApiServerThread
) -> None:
    root = tmp_path / "root"
    root.mkdir(mode=0o700)
    (root / "history.db").write_bytes(b"this is not a database but a diary entry" * 100)
    os.chmod(root / "history.db", 0o600)  # noqa: PTH101

    async with a_node(tmp_path, server) as known:
        await ask(server, "POST", PODS, a_pod("web"))
        await until(lambda: is_ready(known, "web"))
        assert "not a database" in known.history.counts.problem
        with pytest.raises(HistoryError, match="move it away"):
            await known.history.timeline("default", "web")
        await until(
            lambda: "HistoryNotKept" in {e["reason"] for e in server.list_objects("events")}
        )
    assert (root / "history.db").read_bytes().startswith(b"this is not a database")


async def test_no_history_is_kept_if_none_is_wanted(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server, history="false") as known:
        await ask(server, "POST", PODS, a_pod("web"))
        await until(lambda: is_ready(known, "web"))
        with pytest.raises(HistoryError, match="--no-history"):
            await known.history.timeline("default", "web")
    assert not (tmp_path / "root" / "history.db").exists()
