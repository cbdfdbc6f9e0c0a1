"""Paginate pods by a key that stays valid when pods are created or deleted."""

import base64
import binascii
from collections.abc import Iterable

import msgspec

from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.errors import bad_request
from podstatus.web.v1.filters import PodFilter

PodPosition = tuple[str, str, str]
"""The sort key of a pod: namespace, name and UID."""
_POSITION_DECODER = msgspec.json.Decoder(tuple[str, str, str])


class PodPage(msgspec.Struct, frozen=True):
    """One page of the pod list."""

    pods: tuple[PodSummary, ...]
    remaining: int
    next: str
    """Token of the next page; empty: this is the last one."""


def paginate_pods(
    pods: Iterable[PodSummary], filter_: PodFilter, now: Time, *, limit: int, after: str = ""
) -> PodPage:
    """The page after the token `after`. Raises HttpError for an invalid token.

    A pod that is created or deleted between two pages may be missing; none is listed twice, and
    none that exists throughout is missing.
    """
    begin = _decode_token(after) if after else None
    matches = sorted(
        (
            pod
            for pod in pods
            if filter_.matches(pod, now) and (not begin or _position(pod) > begin)
        ),
        key=_position,
    )
    page = tuple(matches[:limit])
    remaining = len(matches) - len(page)
    return PodPage(page, remaining, _encode_token(page[-1]) if remaining else "")


def _position(pod: PodSummary) -> PodPosition:
    return pod.namespace, pod.name, pod.uid


def _encode_token(pod: PodSummary) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_position(pod))).decode()


def _decode_token(text: str) -> PodPosition:
    try:
        return _POSITION_DECODER.decode(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, msgspec.DecodeError, UnicodeError, ValueError) as error:
        raise bad_request(
            "continue is not a token of a previous response; leave it out to start over"
        ) from error
