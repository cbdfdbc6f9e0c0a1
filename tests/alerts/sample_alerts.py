"""Alerts for tests, and receivers whose behaviour the test controls."""

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from podstatus.alerts.model import Action, Alert, AlertId, Subject
from podstatus.kube.objects.pod import PodUID

SECOND = 1_000_000_000
START = 4102444800 * SECOND
"""Start time of the fake clock."""


def firing(name: str = "a", *, life: int = 1, rule: str = "CrashLoop", **fields: Any) -> Alert:
    """An alert of a pod; `life` distinguishes alerts of the same pod."""
    subject = Subject(
        scope="pod", name=f"pod-{name}", namespace="web", uid=PodUID(f"u-{name}"), node="n1"
    )
    given: dict[str, Any] = {
        "id": AlertId(f"{rule}-{name}-{life}"),
        "rule": rule,
        "subject": subject,
        "state": "firing",
        "labels": {"alertname": rule, "severity": "warning", "pod": subject.name},
        "annotations": {"summary": f"{subject.name} crashes"},
        "since": START - 60 * SECOND,
        "fired": START,
    }
    return Alert(**(given | fields))


def pending(alert: Alert) -> Alert:
    return structs.replace(alert, state="pending", fired=0, annotations={})


def resolved(alert: Alert, at: int = START + SECOND) -> Alert:
    return structs.replace(alert, state="resolved", ceased=at, resolved=at)


def message(alert: Alert) -> tuple[str, str]:
    return alert.id, alert.state


class Listener:
    """A notifier that records messages, fails on request, and hangs while it is shut."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str]] = []
        self.tries = 0
        self.errors: list[Exception] = []
        """Errors of the next attempts."""
        self.is_away: Exception | None = None
        """The error of every attempt."""
        self.never: set[str] = set()
        """IDs that fail only while `is_away`."""
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, action: Action, alert: Alert) -> None:
        self.tries += 1
        await self.open.wait()
        if self.errors:
            raise self.errors.pop(0)
        if self.is_away is not None and (not self.never or alert.id in self.never):
            raise self.is_away
        self.received.append(message(alert))


class BatchListener:
    """A batch notifier that wants firing alerts to be repeated."""

    def __init__(self, *, max_batch: int = 3, resend_seconds: float = 60.0) -> None:
        self.max_batch = max_batch
        self.resend_seconds = resend_seconds
        self.batches: list[list[tuple[str, str]]] = []
        self.is_away: Exception | None = None
        self.refused: dict[str, Exception] = {}

    async def send_batch(self, action: Action, alerts: Sequence[Alert]) -> None:
        if self.is_away is not None:
            raise self.is_away
        for alert in alerts:
            if alert.id in self.refused:
                raise self.refused[alert.id]
        self.batches.append([message(alert) for alert in alerts])

    @property
    def received(self) -> list[tuple[str, str]]:
        return [one for batch in self.batches for one in batch]
