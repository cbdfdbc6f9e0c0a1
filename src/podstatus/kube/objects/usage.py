"""Resource usage of a machine, pod or container, as a value."""

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Resource usage at one time; None if a value is not known."""

    at: int
    """When it was measured, in nanoseconds since the Unix epoch."""
    cpu_seconds: float | None = None
    """Cumulative CPU time of all processors."""
    cpu_cores: float | None = None
    """Average number of busy processors since the previous measurement."""
    memory_bytes: int | None = None
    """The working set: memory that cannot be reclaimed at once."""
    disk_bytes: int | None = None
    pids: int | None = None
