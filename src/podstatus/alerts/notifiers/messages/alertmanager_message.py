"""The body of a request to an Alertmanager: alerts in the format of its API v2.

An Alertmanager identifies alerts by their labels and resolves those that are not repeated in time.
So a firing alert has an `endsAt` in the future, which every repetition extends, as in Prometheus.
"""

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from podstatus.alerts.model import Alert
from podstatus.kube.scalars.time import MicroTime

_PERIODS = 4
"""An alert expires after this many missed repetitions, as in Prometheus."""
_SECOND = 1_000_000_000
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")


class _PostedAlert(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: str = msgspec.field(name="startsAt")
    ends_at: str = msgspec.field(name="endsAt")
    generator_url: str = msgspec.field(name="generatorURL", default="")


def alertmanager_body(
    alerts: Sequence[Alert], *, now: int, resend_seconds: float, link: Callable[[Alert], str]
) -> bytes:
    """Encode the alerts as JSON; firing ones expire unless repeated every `resend_seconds`.

    No time is after `now`, in case the wall clock was set back.
    """
    until = now + int(_PERIODS * resend_seconds * _SECOND)
    posted = [
        _PostedAlert(
            labels=_label_set(alert.labels),
            annotations=_label_set(alert.annotations),
            starts_at=_time(min(alert.fired, now)),
            ends_at=_time(min(alert.resolved, now) or until),
            generator_url=link(alert),
        )
        for alert in alerts
    ]
    return msgspec.json.encode(posted)


def _label_set(texts: Mapping[str, str]) -> dict[str, str]:
    """Replace characters that label names cannot have: `app.kubernetes.io/name`, for example."""
    return {_name(name): text for name, text in texts.items() if name}


def _name(name: str) -> str:
    name = _NOT_IN_NAMES.sub("_", name)
    return f"_{name}" if name[0].isdigit() else name


def _time(nanos: int) -> str:
    return MicroTime.from_unix_nanos(nanos).wire or ""
