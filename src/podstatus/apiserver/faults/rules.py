"""Fault rules: which requests fail, and how.

A rule has conditions, spelled as in RBAC (`verb`, `resource`, `namespace`, `name`; an omitted one
matches everything), and an effect. The first rule that matches a request applies.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from podstatus.apiserver.http.errors import StatusError, bad_request
from podstatus.apiserver.request.request_info import RequestInfo
from podstatus.apiserver.resources import RESOURCES
from podstatus.base.msgspec_json import decode_json

FaultVerb = Literal[
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
]
FaultAction = Literal["drop", "lose", "stall", "cut", "compact"]

EXAMPLE = '[{"verb": "patch", "resource": "pods/status", "code": 409, "times": 2}]'

_RESOURCES = frozenset(
    [r.plural for r in RESOURCES] + [f"{r.plural}/{s}" for r in RESOURCES for s in r.subresources]
)
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Fault(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """A fault rule: conditions and effect."""

    verb: FaultVerb | None = None
    resource: str | None = None
    namespace: str | None = None
    name: str | None = None
    latency: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """Delay before anything else, in seconds."""
    code: Annotated[int, Meta(ge=400, le=599)] | None = None
    """Return this error instead of handling the request."""
    retry_after: Annotated[int, Meta(ge=0)] | None = None
    """The Retry-After header, in seconds; requires a code."""
    action: FaultAction | None = None
    times: Annotated[int, Meta(ge=1)] | None = None
    """How many requests it applies to; None for all, until it is removed."""

    def matches(self, request: RequestInfo) -> bool:
        """Return whether the rule applies to this request."""
        pairs = (
            (self.verb, request.verb),
            (self.resource, request.resource),
            (self.namespace, request.namespace),
            (self.name, request.name),
        )
        return all(expected in (None, actual) for expected, actual in pairs)

    @property
    def error(self) -> StatusError | None:
        """The error to return; None without a code."""
        if self.code is None:
            return None
        reason = _REASONS.get(self.code, "")
        phrase = {status.value: status.phrase for status in HTTPStatus}.get(self.code, "error")
        after = self.retry_after
        details = None if after is None else {"retryAfterSeconds": after}
        message = f"fault injected: {phrase.lower()}"
        return StatusError(self.code, reason, message, details, retry_after=after)


def parse_faults(body: bytes) -> tuple[Fault, ...]:
    """Decode a JSON list of rules. Raises StatusError (400) with the expected format."""
    try:
        faults = decode_json(body, tuple[Fault, ...])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise bad_request(f"invalid rules: {error}; send a JSON list such as {EXAMPLE}") from error
    for index, fault in enumerate(faults):
        if why := _rule_error(fault):
            raise bad_request(f"rule {index}: {why}")
    return faults


def first_match(faults: Sequence[Fault], request: RequestInfo) -> Fault | None:
    """Return the first matching rule; None without a match."""
    return next((fault for fault in faults if fault.matches(request)), None)


def consume(faults: Sequence[Fault], used: Fault) -> tuple[Fault, ...]:
    """Return the rules after one use of a rule; it is removed after its last."""
    if used.times is None:
        return tuple(faults)
    index = faults.index(used)
    remaining = [msgspec.structs.replace(used, times=used.times - 1)] if used.times > 1 else []
    return (*faults[:index], *remaining, *faults[index + 1 :])


def _rule_error(fault: Fault) -> str:
    """Return why a rule is invalid; empty if it is valid."""
    if fault.resource is not None and fault.resource not in _RESOURCES:
        return f"unknown resource {fault.resource!r}; use one of {', '.join(sorted(_RESOURCES))}"
    if not (fault.latency or fault.code or fault.action):
        actions = ", ".join(get_args(FaultAction))
        return f"the rule has no effect; set latency, code or action ({actions})"
    if fault.retry_after is not None and fault.code is None:
        return "retryAfter requires a code, such as 429 or 503"
    if fault.code is not None and fault.action not in (None, "cut"):
        return f"code can be combined with action cut only, not with {fault.action}"
    if fault.action in ("stall", "cut") and fault.verb != "watch":
        return f'{fault.action} applies to watches only; add "verb": "watch"'
    if fault.action == "stall" and fault.times is not None:
        return "stall lasts until its rule is removed; omit times"
    return ""
