"""Pressure stall information of the kernel (PSI): how long tasks have waited for a resource."""

import msgspec

_MICROSECOND = 1_000


class Stall(msgspec.Struct, frozen=True, kw_only=True):
    """How long tasks have waited, in total and lately."""

    total_nanoseconds: int
    avg10: float
    """Percentage of the last 10 seconds, as of the reading."""
    avg60: float
    avg300: float


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """Pressure on a resource, by how many of the tasks waited."""

    some: Stall
    """At least one task waited."""
    full: Stall | None = None
    """All tasks waited. None: Linux before 5.13 does not know this for the CPU."""


class Pressures(msgspec.Struct, frozen=True, kw_only=True):
    """Pressure on each resource; None if the kernel does not report it."""

    cpu: Pressure | None = None
    memory: Pressure | None = None
    io: Pressure | None = None


NO_PRESSURES = Pressures()


def parse_pressure(text: str | None) -> Pressure | None:
    """Parse a file such as /proc/pressure/cpu or cpu.pressure; None without a line `some`."""
    lines = {}
    for line in (text or "").splitlines():
        kind, *fields = line.split()
        lines[kind] = _stall(dict(field.partition("=")[::2] for field in fields))
    some = lines.get("some")
    return None if some is None else Pressure(some=some, full=lines.get("full"))


def _stall(fields: dict[str, str]) -> Stall:
    return Stall(
        total_nanoseconds=int(fields["total"]) * _MICROSECOND,
        avg10=float(fields["avg10"]),
        avg60=float(fields["avg60"]),
        avg300=float(fields["avg300"]),
    )
