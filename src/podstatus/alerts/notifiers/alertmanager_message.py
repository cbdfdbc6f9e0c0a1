"""What an Alertmanager is sent: alerts as its API v2 takes them.

It knows alerts by their labels, and takes one that it does not hear of for a while to be over. So
one that fires has an end some time ahead, which is put off again and again, as Prometheus does it.
"""

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from podstatus.alerts.model import Alert
from podstatus.kube.scalars.time import MicroTime

_PERIODS = 4
"""After so many without a word an alert is over. Prometheus has the same number."""
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
    """The alerts as JSON; those that fire are told again after so many seconds.

    Of a clock that was set back since, nothing began or ended later than now.
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
    """With names as Prometheus has them: `app.kubernetes.io/name` is `app_kubernetes_io_name`."""
    return {_name(name): text for name, text in texts.items() if name}


def _name(name: str) -> str:
    name = _NOT_IN_NAMES.sub("_", name)
    return f"_{name}" if name[0].isdigit() else name


def _time(nanos: int) -> str:
    return MicroTime.from_unix_nanos(nanos).wire or ""
