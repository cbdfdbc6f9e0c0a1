"""Each invariant can fail: somebody breaks it on a real stage, and the campaign says so."""

import itertools
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.soak import churn
from tests.soak.campaign import Campaign, Plan
from tests.soak.kinds import CONTAINER, RUN, UID
from tests.soak.ledger import Entry
from tests.soak.report import Report
from tests.soak.stage import stage
from tests.support.processes.agent_process import Document, until
from tests.support.processes.api_servers import STRATEGIC

pytestmark = pytest.mark.slow

_PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch) -> Iterator[Campaign]:
    """A small one, in its first calm."""
    monkeypatch.setattr(churn, "PODS", 6)
    kinds = itertools.cycle(("job", "service"))
    monkeypatch.setattr(churn, "any_kind", lambda _: next(kinds))
    with stage("none", keep=[]) as made:
        campaign = Campaign(Plan(seed=1, seconds=0), made, Report())
        campaign.watcher.start()
        made.node.start()
        campaign.churn.fill()
        campaign.calm("the beginning")
        yield campaign
        campaign.watcher.stop()


def test_what_is_broken_by_hand_is_noticed(campaign: Campaign) -> None:
    assert campaign.invariants.look() == []
    for break_, complaint in (
        (leave_process, "runs, and that pod is gone"),
        (leave_folder, "is there, and its pod is gone"),
        (delete_behind_its_back, "was created and is not there"),
        (stop_the_agent, "was deleted and is still there"),
    ):
        with break_(campaign):
            until(partial(found, campaign.invariants.look, complaint), lambda: complaint)  # noqa: B023
        until(lambda: not campaign.invariants.look(), campaign.invariants.look)
    assert campaign.complaints() == []
    show_a_wrong_exit_code(campaign)
    until(lambda: found(campaign.complaints, "is shown"))


def found(look: Callable[[], list[str]], complaint: str) -> bool:
    return any(complaint in it for it in look())


def first(campaign: Campaign, kind: str) -> Entry:
    return next(entry for entry in campaign.ledger.wanted() if entry.kind == kind)


@contextmanager
def leave_process(campaign: Campaign) -> Iterator[None]:
    environment = {RUN: campaign.run_name, UID: "nobody", CONTAINER: "app", **os.environ}
    with subprocess.Popen(["/bin/sleep", "100"], env=environment) as process:
        yield
        process.kill()


@contextmanager
def leave_folder(campaign: Campaign) -> Iterator[None]:
    folder = campaign.stage.node.runtime_dir / "pods/nobody"
    folder.mkdir()
    yield
    folder.rmdir()


@contextmanager
def delete_behind_its_back(campaign: Campaign) -> Iterator[None]:
    entry = first(campaign, "service")
    options = {"gracePeriodSeconds": 0}
    assert campaign.stage.server.ask("DELETE", f"{_PODS}/{entry.name}", options)[0] == 200
    yield
    campaign.ledger.take_deleted(entry.uid, forced=True)


@contextmanager
def stop_the_agent(campaign: Campaign) -> Iterator[None]:
    campaign.stage.node.send(signal.SIGSTOP)
    entry = first(campaign, "service")  # who has ended is deleted at once
    assert campaign.stage.server.ask("DELETE", f"{_PODS}/{entry.name}")[0] == 200
    campaign.ledger.take_deleted(entry.uid, forced=False)
    yield
    campaign.stage.node.send(signal.SIGCONT)


def show_a_wrong_exit_code(campaign: Campaign) -> None:
    """As another client may."""
    name = first(campaign, "job").name
    status = until(lambda: ended_status(campaign, name))
    status["state"]["terminated"] |= {"exitCode": 99, "containerID": "process://other"}
    code, answer = campaign.stage.server.ask(
        *("PATCH", f"{_PODS}/{name}/status", {"status": {"containerStatuses": [status]}}),
        content_type=STRATEGIC,
    )
    assert code == 200, answer


def ended_status(campaign: Campaign, name: str) -> Document | None:
    _, pod = campaign.stage.server.ask("GET", f"{_PODS}/{name}")
    status: Document = pod["status"]["containerStatuses"][0]
    return status if "terminated" in status["state"] else None
