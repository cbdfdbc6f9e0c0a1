"""What is to go wrong, and for which requests: rules that tests give a server.

A rule has conditions, spelled as in RBAC (`verb`, `resource`, `namespace`, `name`; what is left
out matches everything), and says what happens. The first rule that matches a request decides.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from podstatus.apiserver.http.errors import StatusError, bad_request
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


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule looks at in a request."""

    verb: str
    resource: str = ""
    """With its subresource; empty for what is no object, such as /version."""
    namespace: str = ""
    name: str = ""


class Fault(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """One rule."""

    verb: FaultVerb | None = None
    resource: str | None = None
    namespace: str | None = None
    name: str | None = None
    latency: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """Seconds before anything else happens."""
    code: Annotated[int, Meta(ge=400, le=599)] | None = None
    """Answer this instead of doing anything."""
    retry_after: Annotated[int, Meta(ge=0)] | None = None
    """Seconds; goes with a code."""
    action: FaultAction | None = None
    times: Annotated[int, Meta(ge=1)] | None = None
    """How many requests it is for; None for all, until the rule is taken away."""

    def matches(self, request: RequestInfo) -> bool:
        """Whether the rule is for this request."""
        pairs = (
            (self.verb, request.verb),
            (self.resource, request.resource),
            (self.namespace, request.namespace),
            (self.name, request.name),
        )
        return all(wanted in (None, found) for wanted, found in pairs)

    @property
    def error(self) -> StatusError | None:
        """What is answered, if it is an error."""
        if self.code is None:
            return None
        reason = _REASONS.get(self.code, "")
        words = {status.value: status.phrase for status in HTTPStatus}.get(self.code, "error")
        after = self.retry_after
        details = None if after is None else {"retryAfterSeconds": after}
        message = f"fault injected: {words.lower()}"
        return StatusError(self.code, reason, message, details, retry_after=after)


def parse_faults(body: bytes) -> tuple[Fault, ...]:
    """The rules in a JSON list. Raises Problem that says what is expected."""
    try:
        faults = decode_json(body, tuple[Fault, ...])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise bad_request(f"{error}; a JSON list of rules is expected, e.g. {EXAMPLE}") from error
    for index, fault in enumerate(faults):
        if why := _rule_error(fault):
            raise bad_request(f"rule {index}: {why}")
    return faults


def first_match(faults: Sequence[Fault], request: RequestInfo) -> int | None:
    """The index of the rule that decides about a request; None if there is none."""
    return next((i for i, fault in enumerate(faults) if fault.matches(request)), None)


def consume(faults: Sequence[Fault], index: int) -> tuple[Fault, ...]:
    """The rules after one of them was applied: it is gone if that was the last time."""
    times = faults[index].times
    if times is None:
        return tuple(faults)
    left = [msgspec.structs.replace(faults[index], times=times - 1)] if times > 1 else []
    return (*faults[:index], *left, *faults[index + 1 :])


def _rule_error(fault: Fault) -> str:
    """What makes no sense about a rule; empty if it does."""
    if fault.resource is not None and fault.resource not in _RESOURCES:
        return f"there is no resource {fault.resource!r}; one of {', '.join(sorted(_RESOURCES))}"
    if not (fault.latency or fault.code or fault.action):
        actions = ", ".join(get_args(FaultAction))
        return f"nothing would go wrong; give latency, code or action ({actions})"
    if fault.retry_after is not None and fault.code is None:
        return "retryAfter goes with a code, such as 429 or 503"
    if fault.code is not None and fault.action not in (None, "cut"):
        return f"code goes with no action but cut, not with {fault.action}"
    if fault.action in ("stall", "cut") and fault.verb != "watch":
        return f'{fault.action} is for watches; add "verb": "watch"'
    if fault.action == "stall" and fault.times is not None:
        return "a stall lasts until its rule is taken away; leave times out"
    return ""
