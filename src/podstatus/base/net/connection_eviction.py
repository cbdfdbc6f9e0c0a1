"""The connections of a port by stage, and the choice of connections to evict. No I/O.

Every stage has a limit. A connection that enters a full stage evicts another one of the same stage,
so a flood in one stage takes no slots of the others:

SILENT           accepted, the client has sent nothing
HANDSHAKE        the client has sent data, TLS is not established
HEAD             the head of the first request has not arrived
UNAUTHENTICATED  requests without a valid credential
AUTHENTICATED    a request had a valid credential; never evicted while a request is handled
"""

from collections.abc import Hashable, Iterable, Mapping
from enum import IntEnum
from typing import Generic, TypeVar

import msgspec

Key = TypeVar("Key", bound=Hashable)

_BASE_DESCRIPTORS = 1024
"""The limits of a port are defined for this soft limit of descriptors."""
_MAX_DESCRIPTORS = 2048
"""More descriptors do not raise the limits: each established connection takes about 300 KiB."""
_MIN_LIMIT = 2
HANDSHAKE_SECONDS = 0.5
"""A handshake is not evicted before this age."""


class ConnectionStage(IntEnum):
    """The progress of a connection, in order."""

    SILENT = 0
    HANDSHAKE = 1
    HEAD = 2
    UNAUTHENTICATED = 3
    AUTHENTICATED = 4


BEFORE_FIRST_REQUEST = (ConnectionStage.SILENT, ConnectionStage.HANDSHAKE, ConnectionStage.HEAD)


class StageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum number of connections of a port in each stage."""

    silent: int
    handshake: int = 0
    """0 if the port has no TLS."""
    head: int
    unauthenticated: int
    authenticated: int = 0
    """0 if the port has no authentication."""

    def scaled(self, descriptors: int) -> "StageLimits":
        """Return the limits for this number of descriptors; `self` is for 1024."""
        factor = min(descriptors, _MAX_DESCRIPTORS) / _BASE_DESCRIPTORS
        return StageLimits(
            **{
                name: limit and max(_MIN_LIMIT, int(limit * factor))
                for name, limit in msgspec.structs.asdict(self).items()
            }
        )

    @property
    def total(self) -> int:
        """Maximum number of descriptors for connections of the port."""
        return sum(self.by_stage().values())

    def by_stage(self) -> Mapping[ConnectionStage, int]:
        limits = (self.silent, self.handshake, self.head, self.unauthenticated, self.authenticated)
        return dict(zip(ConnectionStage, limits, strict=True))


def choose_eviction(stage: ConnectionStage, connections: Iterable[tuple[Key, bool]]) -> Key | None:
    """Return the connection of a full stage to evict; `connections` are ordered oldest first.

    Each is a key and whether a request on it is being handled. The oldest idle one is evicted,
    otherwise the oldest one; an active authenticated one never is, so the result may be None.
    """
    oldest: Key | None = None
    for key, is_active in connections:
        if not is_active:
            return key
        if oldest is None:
            oldest = key
    return None if stage is ConnectionStage.AUTHENTICATED else oldest


class ConnectionTable(Generic[Key]):
    """The connections of a port by stage. No I/O; not thread-safe."""

    def __init__(self, limits: StageLimits, first_request_seconds: float) -> None:
        """`first_request_seconds`: from accept to the end of the first request's head."""
        self._limits = limits.by_stage()
        self._first_request_seconds = first_request_seconds
        self._stages: dict[ConnectionStage, dict[Key, float]] = {
            stage: {} for stage in ConnectionStage
        }
        """Accept time of each connection, in the order of entering the stage."""
        self._stage_of: dict[Key, ConnectionStage] = {}
        self._active: set[Key] = set()

    def __len__(self) -> int:
        return len(self._stage_of)

    def connections(self, stage: ConnectionStage | None = None) -> list[Key]:
        """Return all connections, or those of a stage in the order of entering it."""
        return list(self._stage_of if stage is None else self._stages[stage])

    def is_full(self, stage: ConnectionStage) -> bool:
        """Return whether one more connection has to evict another one."""
        return len(self._stages[stage]) >= self._limits[stage]

    def can_accept(self, now: float) -> bool:
        """Return whether to accept one more: not if that would evict a young handshake.

        Clients whose handshakes are aborted reconnect, and each costs another handshake.
        """
        handshakes = self._stages[ConnectionStage.HANDSHAKE]
        if not handshakes or not self.is_full(ConnectionStage.HANDSHAKE):
            return True
        return now - next(iter(handshakes.values())) >= HANDSHAKE_SECONDS

    def add(self, key: Key, now: float) -> Key | None:
        """Add a connection accepted at `now`, in seconds; return the one evicted, to be closed."""
        evicted = self._evict(ConnectionStage.SILENT)
        self._stages[ConnectionStage.SILENT][key] = now
        self._stage_of[key] = ConnectionStage.SILENT
        return evicted

    def advance(self, key: Key, stage: ConnectionStage) -> Key | None:
        """Move a connection to a later stage, never back; return the connection to close.

        This is the connection itself, which does not move, if it was evicted before or if all slots
        are taken by active authenticated connections.
        """
        before = self._stage_of.get(key)
        if before is None:
            return key
        if before >= stage:
            return None
        evicted = self._evict(stage)
        if self.is_full(stage):
            return key
        self._stages[stage][key] = self._stages[before].pop(key)
        self._stage_of[key] = stage
        return evicted

    def set_active(self, key: Key, *, active: bool) -> None:
        """Set whether a request is being handled on the connection."""
        if active and key in self._stage_of:
            self._active.add(key)
        else:
            self._active.discard(key)

    def remove(self, key: Key) -> None:
        stage = self._stage_of.pop(key, None)
        if stage is not None:
            del self._stages[stage][key]
            self._active.discard(key)

    def find_overdue(self, now: float) -> list[Key]:
        """Return connections past the deadline of the first request; `now` in seconds."""
        return [
            key
            for stage in BEFORE_FIRST_REQUEST
            for key, accepted in self._stages[stage].items()
            if now - accepted >= self._first_request_seconds
        ]

    def evict_idle(self) -> Key | None:
        """Evict the least valuable connection that is not authenticated; None if there is none."""
        for stage in (*BEFORE_FIRST_REQUEST, ConnectionStage.UNAUTHENTICATED):
            if (evicted := self._choose(stage)) is not None:
                self.remove(evicted)
                return evicted
        return None

    def _evict(self, stage: ConnectionStage) -> Key | None:
        """Evict a connection if the stage is full and one may be evicted."""
        evicted = self._choose(stage) if self.is_full(stage) else None
        if evicted is not None:
            self.remove(evicted)
        return evicted

    def _choose(self, stage: ConnectionStage) -> Key | None:
        return choose_eviction(stage, ((key, key in self._active) for key in self._stages[stage]))
