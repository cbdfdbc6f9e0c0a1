"""The history of an agent, and of the next one in the same root directory."""

import asyncio
from pathlib import Path

from podstatus.agent.compose.history import AgentHistory
from podstatus.agent.settings.load import load_settings
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import HistoryEntry, open_history_reader
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.support.pod_services import ignore

POD = make_pod("web")


def a_history(settings: AgentSettings, folder: Path, clock: Clock) -> AgentHistory:
    return AgentHistory(
        settings,
        folder,
        clock,
        translate_uid=lambda uid: PodUID(uid.removeprefix("mirror-")),
        on_foreign_write=ignore,
        on_loss=ignore,
    )


def next_history(tmp_path: Path, clock: FakeClock) -> AgentHistory:
    """The history of the next agent."""
    settings = load_settings({"root_dir": str(tmp_path)}, {}).settings
    return a_history(settings, tmp_path, clock)


def leave(history: AgentHistory) -> None:
    """An agent that has seen the pod is there for the last time."""

    async def scene() -> None:
        assert history.downtime is not None
        there = asyncio.create_task(history.downtime.run())
        await run_ready_tasks()
        await asyncio.get_running_loop().shutdown_default_executor()
        there.cancel()

    assert history.writer is not None
    assert history.downtime is not None
    history.writer.on_pod_updated(POD, POD.status, is_added=True)
    history.downtime.on_pod_updated(POD, POD.status, is_added=True)
    assert [moment.transition.kind for moment in noted(history)] == ["seen"]
    history.close()
    asyncio.run(scene())


def noted(history: AgentHistory) -> list[HistoryEntry]:
    assert history.writer is not None
    asyncio.run(history.writer.write_once())
    with open_history_reader(history.require_path()) as reader:
        return reader.entries_after(0, limit=100)


def words(moment: HistoryEntry) -> tuple[str, ...]:
    it = moment.transition
    return it.kind, it.subject, it.after_text, it.reason, it.message
