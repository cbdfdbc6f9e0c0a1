"""Whether the kernel ended something of a container for want of memory."""

from pathlib import Path


def was_oom_killed(events: str) -> bool:
    """What the file says that counts such ends, a line `oom_kill N`; empty for no file."""
    if not events:
        return False
    try:
        lines = Path(events).read_text().splitlines()
    except OSError:
        return False
    counts = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return any(count != "0" for count in counts)
