"""How much of a machine something uses, as a value."""

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What is used at one moment; None where nobody knows."""

    at: int
    """When it was read, in nanoseconds since the Unix epoch."""
    cpu_seconds: float | None = None
    """Of all processors together, since the beginning."""
    cpu_cores: float | None = None
    """How many processors were busy since the reading before."""
    memory_bytes: int | None = None
    """What cannot be given back at once: the working set."""
    disk_bytes: int | None = None
    pids: int | None = None
