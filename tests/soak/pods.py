"""Pods as an API server shows them, for the tests of judges."""

from typing import Any

from tests.soak.judge import Known
from tests.soak.truth import Attempt, Told
from tests.support.processes.agent_process import Document

NOW = 1_800_000_000.0
RUNS: Document = {"running": {"startedAt": "2027-01-15T08:00:00Z"}}


def ended(code: int, words: str = "", *, at: str = "2027-01-15T07:59:55Z", **more: Any) -> Document:
    """A state; by default some seconds before NOW."""
    reason = "Completed" if code == 0 else "Error"
    end = {"exitCode": code, "reason": reason, "message": words, "finishedAt": at, **more}
    return {"terminated": {"containerID": f"process://{words or code}", **end}}


def status(name: str = "app", state: Document = RUNS, count: int = 0, **more: Any) -> Document:
    return {"name": name, "state": state, "lastState": {}, "restartCount": count, **more}


def shown(
    *containers: Document,
    phase: str = "Running",
    policy: str = "Always",
    init: list[Document] | None = None,
    ready: str = "False",
    version: int = 1,
    **meta: Any,
) -> Document:
    """A pod with these statuses of containers."""
    return {
        "metadata": {"name": "a", "uid": "u", "resourceVersion": str(version), **meta},
        "spec": {
            "restartPolicy": policy,
            "containers": [{"name": it["name"]} for it in containers],
            "initContainers": [{"name": it["name"]} for it in init or ()],
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": list(containers),
            "initContainerStatuses": init or [],
        },
    }


def told(*codes: int | None, kills: int = 0) -> Told:
    """Attempts that ended with these; None: it never said. The last ones were killed."""
    first = len(codes) - kills
    attempts = (
        Attempt(number=number, code=code, killed=number > first)
        for number, code in enumerate(codes, 1)
    )
    return Told(attempts=tuple(attempts), kills=kills)


def known(alive: str = "", *, full: bool = False, **containers: Told) -> Known:
    names = frozenset(alive.split())
    return Known(told=containers, alive=names, disk_was_full=full, now=NOW)
