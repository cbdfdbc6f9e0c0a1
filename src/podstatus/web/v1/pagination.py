"""Pods in an order that lasts, a page at a time."""

import base64
import binascii
from collections.abc import Iterable

import msgspec

from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.errors import bad_request
from podstatus.web.v1.filters import PodFilter

PodPosition = tuple[str, str, str]
"""Where a pod is in the order: by namespace, name and UID."""
_POSITION_DECODER = msgspec.json.Decoder(tuple[str, str, str])


class PodPage(msgspec.Struct, frozen=True):
    """Some of the pods."""

    pods: tuple[PodSummary, ...]
    remaining: int
    next: str
    """Where the next page begins; empty: there is none."""


def paginate_pods(
    pods: Iterable[PodSummary], filter_: PodFilter, now: Time, *, limit: int, after: str = ""
) -> PodPage:
    """The first pods that are wanted, after those that were given before. Raises Refusal.

    Pods that come and go between two pages are in one of them, or not: none is there twice, and
    none that stays is missing.
    """
    begin = _decode_token(after) if after else None
    found = sorted(
        (
            pod
            for pod in pods
            if filter_.matches(pod, now) and (not begin or _position(pod) > begin)
        ),
        key=_position,
    )
    shown = tuple(found[:limit])
    remaining = len(found) - len(shown)
    return PodPage(shown, remaining, _encode_token(shown[-1]) if remaining else "")


def _position(pod: PodSummary) -> PodPosition:
    return pod.namespace, pod.name, pod.uid


def _encode_token(pod: PodSummary) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_position(pod))).decode()


def _decode_token(text: str) -> PodPosition:
    try:
        return _POSITION_DECODER.decode(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, msgspec.DecodeError, UnicodeError, ValueError) as error:
        raise bad_request(
            "continue is not what an answer gave; leave it out to begin anew"
        ) from error
