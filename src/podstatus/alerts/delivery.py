"""What has become of telling a receiver of an alert, and how receivers are named.

A receiver is a kind of action with its options: two rules with the same webhook have one.
"""

import hashlib
from collections.abc import Mapping
from typing import Literal, NewType
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from podstatus.alerts.alert import Alert
from podstatus.alerts.rule import Action
from podstatus.observe.summary.pod import plain_text

ReceiverKey = NewType("ReceiverKey", str)

Progress = Literal["waiting", "tried", "told", "refused"]
"""What a receiver knows of an alert that fires: nothing yet; perhaps; that it fires; nothing, and
it will not be told. When it has been told of the end there is nothing left to know."""

_LONGEST = 4096
"""Characters of a label or an annotation that anybody is told."""
_DIGITS = 6
"""Of a digest: enough to tell a handful of receivers apart."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How far one receiver of an alert is."""

    action: Action
    progress: Progress


class KeptAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert, and how far its receivers are."""

    alert: Alert
    deliveries: Mapping[ReceiverKey, Delivery] = {}

    @property
    def is_over(self) -> bool:
        """Whether nobody has to be told anything any more."""
        return self.alert.state == "resolved" and not self.deliveries

    def with_progress(self, action: Action, progress: Progress | None) -> "KeptAlert":
        """After a receiver got on; None: there is nothing left to tell it."""
        deliveries = dict(self.deliveries)
        if progress is None:
            deliveries.pop(receiver_key(action), None)
        else:
            deliveries[receiver_key(action)] = Delivery(action=action, progress=progress)
        return structs.replace(self, deliveries=deliveries)


def receiver_key(action: Action) -> ReceiverKey:
    """The same for all actions that go to the same receiver."""
    options = sorted(action.options.items())
    return ReceiverKey(msgspec.json.encode([action.kind, options]).decode())


def receiver_name(action: Action) -> str:
    """What it is and where, for people: `webhook https://chat.example.org (3f2a91)`.

    Of a URL the host alone: the path is often all that keeps others from using it. The digest
    tells receivers of the same host apart.
    """
    if not action.options:
        return action.kind
    digest = hashlib.sha256(receiver_key(action).encode()).hexdigest()[:_DIGITS]
    where = _origin(action.options.get("url", ""))
    return " ".join(filter(None, (action.kind, where, f"({digest})")))


def plain_alert(alert: Alert) -> Alert:
    """The alert with texts that everybody can print and store, of a bounded length."""
    return structs.replace(
        alert, labels=_plain(alert.labels), annotations=_plain(alert.annotations)
    )


def _plain(texts: Mapping[str, str]) -> dict[str, str]:
    return {plain_text(name, _LONGEST): plain_text(text, _LONGEST) for name, text in texts.items()}


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")
