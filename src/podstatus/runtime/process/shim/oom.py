"""Detection of OOM kills in a container."""

from pathlib import Path


def was_oom_killed(events: str) -> bool:
    """Return whether the cgroup's event file has a nonzero `oom_kill`; empty path: no file."""
    if not events:
        return False
    try:
        lines = Path(events).read_text().splitlines()
    except OSError:
        return False
    counts = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return any(count != "0" for count in counts)
