"""Z-pages: `/configz`, `/flagz` and `/statusz`.

Upstream: configz, component-base/configz/configz.go; flagz and statusz, apiserver/pkg/server/flagz
and statusz, textserializer.go; v0.36.4. The texts are for people: upstream chooses the separator
of name and value at random so that clients do not parse them; here it is always the same.
"""

from collections.abc import Iterable

import msgspec

from podstatus.kube.scalars.time import Time
from podstatus.web.ports import AgentDescription
from podstatus.web.routes import ROUTES, Route

_COMPONENT = "podstatus"
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only."
)
_SECOND = 1_000_000_000
_NOT_LISTED = {"/openapi", "/openapi.json"}
"""Upstream lists debugging endpoints only."""


def configz(agent: AgentDescription) -> bytes:
    return msgspec.json.encode({"kubeletconfig": agent.configuration})


def flagz(agent: AgentDescription) -> str:
    """The flags, one per line, sorted."""
    lines = [f"{name}={agent.flags[name]}\n" for name in sorted(agent.flags)]
    return f"\n{_COMPONENT} flagz\n{_WARNING}\n{''.join(lines)}"


def statusz(agent: AgentDescription, now: int, routes: Iterable[Route] = ROUTES) -> str:
    """Start time, uptime, versions and paths; `now` in nanoseconds since the Unix epoch."""
    up = max(0, now - agent.started) // _SECOND
    paths = sorted({f"/{route.parts[0]}" for route in routes} - _NOT_LISTED)
    return (
        f"\n{_COMPONENT} statusz\n{_WARNING}\n\n"
        f"Started: {Time.from_unix_nanos(agent.started).wire}\n"
        f"Up: {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec\n"
        f"Python version: {agent.python}\n"
        f"Binary version: {agent.version}\n"
        f"Emulation version: {agent.kubernetes}\n"
        f"Paths: {' '.join(paths)}\n"
    )
