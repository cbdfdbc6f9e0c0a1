"""Which connections of a port are kept, and which are closed to make room; as a value of its own.

A connection goes through stages, each of which has a limit. One that enters a full stage pushes
out another of the same stage, so a flood that stays in one stage takes no places in the others:

SILENT      accepted, and the client has sent nothing
HANDSHAKE   the client has sent something, TLS is not established
HEAD        the head of the first request has not arrived
UNKNOWN     requests without a valid credential
KNOWN       a request had a valid credential; never closed while it is being answered
"""

from collections.abc import Hashable, Iterable, Mapping
from enum import IntEnum
from typing import Generic, TypeVar

import msgspec

Key = TypeVar("Key", bound=Hashable)

_BASE_DESCRIPTORS = 1024
"""The soft limit for which the limits of a port are written down."""
_MAX_DESCRIPTORS = 2048
"""More descriptors do not mean more places: each established connection takes about 300 KiB."""
_MIN_LIMIT = 2
HANDSHAKE_SECONDS = 0.5
"""For which a handshake is not given up for another."""


class ConnectionStage(IntEnum):
    """How far a connection has got."""

    SILENT = 0
    HANDSHAKE = 1
    HEAD = 2
    UNAUTHENTICATED = 3
    AUTHENTICATED = 4


class StageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many connections of a port there may be in each stage."""

    silent: int
    handshake: int = 0
    """0: the port speaks no TLS."""
    head: int
    unauthenticated: int
    authenticated: int = 0
    """0: the port takes no credentials."""

    def scaled(self, descriptors: int) -> "StageLimits":
        """These limits are for 1024 descriptors; those for another limit of the process."""
        factor = min(descriptors, _MAX_DESCRIPTORS) / _BASE_DESCRIPTORS
        return StageLimits(
            **{
                name: limit and max(_MIN_LIMIT, int(limit * factor))
                for name, limit in msgspec.structs.asdict(self).items()
            }
        )

    @property
    def total(self) -> int:
        """How many descriptors the connections of the port take at most."""
        return sum(self.by_stage().values())

    def by_stage(self) -> Mapping[ConnectionStage, int]:
        """The limit of each stage."""
        limits = (self.silent, self.handshake, self.head, self.unauthenticated, self.authenticated)
        return dict(zip(ConnectionStage, limits, strict=True))


def choose_eviction(stage: ConnectionStage, connections: Iterable[tuple[Key, bool]]) -> Key | None:
    """Which connection of a full stage is closed; `connections` by age, oldest first.

    Each has its key, and whether a request on it is being answered. The oldest idle one is closed;
    if there is none, the oldest, but None of those that are known.
    """
    oldest: Key | None = None
    for key, is_active in connections:
        if not is_active:
            return key
        if oldest is None:
            oldest = key
    return None if stage is ConnectionStage.AUTHENTICATED else oldest


class ConnectionTable(Generic[Key]):
    """The connections of a port by stage. Without I/O; not thread-safe."""

    def __init__(self, limits: StageLimits, first_request_seconds: float) -> None:
        """`first_request_seconds`: from accept to the end of the first request's head."""
        self._limits = limits.by_stage()
        self._first_request_seconds = first_request_seconds
        self._stages: dict[ConnectionStage, dict[Key, float]] = {
            stage: {} for stage in ConnectionStage
        }
        """When each was accepted, in the order in which they entered the stage."""
        self._stage_of: dict[Key, ConnectionStage] = {}
        self._active: set[Key] = set()

    def __len__(self) -> int:
        return len(self._stage_of)

    def connections(self, stage: ConnectionStage | None = None) -> list[Key]:
        """All connections, or those of a stage: the one that entered it first at the front."""
        return list(self._stage_of if stage is None else self._stages[stage])

    def stage_of(self, key: Key) -> ConnectionStage | None:
        """The stage of a connection; None if it is not in the table."""
        return self._stage_of.get(key)

    def is_full(self, stage: ConnectionStage) -> bool:
        """Whether one more has to push out another."""
        return len(self._stages[stage]) >= self._limits[stage]

    def has_room(self, now: float) -> bool:
        """Whether one more may be accepted: not while it would end a handshake that has just begun.

        Clients whose handshakes end that way connect again, and each costs another one.
        """
        handshakes = self._stages[ConnectionStage.HANDSHAKE]
        if not handshakes or not self.is_full(ConnectionStage.HANDSHAKE):
            return True
        return now - next(iter(handshakes.values())) >= HANDSHAKE_SECONDS

    def add(self, key: Key, now: float) -> Key | None:
        """Add a connection that was accepted `now`, in seconds; the one that has to be closed."""
        evicted = self._evict(ConnectionStage.SILENT)
        self._stages[ConnectionStage.SILENT][key] = now
        self._stage_of[key] = ConnectionStage.SILENT
        return evicted

    def advance(self, key: Key, stage: ConnectionStage) -> Key | None:
        """Move a connection to a later stage, never back; the one that has to be closed.

        That is the connection itself, and it stays where it is, if it has been pushed out or all
        places are taken by active connections that are known.
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
        """Note whether a request is being answered."""
        if active and key in self._stage_of:
            self._active.add(key)
        else:
            self._active.discard(key)

    def remove(self, key: Key) -> None:
        """Forget a connection that is closed."""
        stage = self._stage_of.pop(key, None)
        if stage is not None:
            del self._stages[stage][key]
            self._active.discard(key)

    def find_overdue(self, now: float) -> list[Key]:
        """Connections whose first request has not arrived in time; `now` in seconds."""
        return [
            key
            for stage in (ConnectionStage.SILENT, ConnectionStage.HANDSHAKE, ConnectionStage.HEAD)
            for key, accepted in self._stages[stage].items()
            if now - accepted >= self._first_request_seconds
        ]

    def evict_idle(self) -> Key | None:
        """Push out the connection that is missed least, if there is one to spare."""
        for stage in (
            ConnectionStage.SILENT,
            ConnectionStage.HANDSHAKE,
            ConnectionStage.HEAD,
            ConnectionStage.UNAUTHENTICATED,
        ):
            if (evicted := self._choose(stage)) is not None:
                self.remove(evicted)
                return evicted
        return None

    def _evict(self, stage: ConnectionStage) -> Key | None:
        """Push one out if the stage is full, and there is one that may be."""
        evicted = self._choose(stage) if self.is_full(stage) else None
        if evicted is not None:
            self.remove(evicted)
        return evicted

    def _choose(self, stage: ConnectionStage) -> Key | None:
        return choose_eviction(stage, ((key, key in self._active) for key in self._stages[stage]))
