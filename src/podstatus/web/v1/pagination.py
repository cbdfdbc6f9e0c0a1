"""Pods in an order that lasts, a page at a time."""

import base64
import binascii
from collections.abc import Iterable

import msgspec

from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.errors import bad_request
from podstatus.web.v1.filters import PodFilter

Place = tuple[str, str, str]
"""Where a pod is in the order: by namespace, name and UID."""
_PLACE = msgspec.json.Decoder(tuple[str, str, str])


class Page(msgspec.Struct, frozen=True):
    """Some of the pods."""

    pods: tuple[PodSummary, ...]
    remaining: int
    next: str
    """Where the next page begins; empty: there is none."""


def page_of_pods(
    pods: Iterable[PodSummary], wanted: PodFilter, now: Time, *, limit: int, after: str = ""
) -> Page:
    """The first pods that are wanted, after those that were given before. Raises Refusal.

    Pods that come and go between two pages are in one of them, or not: none is there twice, and
    none that stays is missing.
    """
    begin = _read_place(after) if after else None
    found = sorted(
        (pod for pod in pods if wanted.matches(pod, now) and (not begin or _place(pod) > begin)),
        key=_place,
    )
    shown = tuple(found[:limit])
    remaining = len(found) - len(shown)
    return Page(shown, remaining, _write_place(shown[-1]) if remaining else "")


def _place(pod: PodSummary) -> Place:
    return pod.namespace, pod.name, pod.uid


def _write_place(pod: PodSummary) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_place(pod))).decode()


def _read_place(text: str) -> Place:
    try:
        return _PLACE.decode(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, msgspec.DecodeError, UnicodeError, ValueError) as error:
        raise bad_request(
            "continue is not what an answer gave; leave it out to begin anew"
        ) from error
