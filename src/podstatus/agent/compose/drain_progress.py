"""How far a drain is, in words."""

from podstatus.workers.shutdown.manager import ShutdownProgress

_MOST_NAMES = 5


def describe_progress(progress: ShutdownProgress) -> str:
    """What is waited for; empty if for nothing."""
    if not progress.ending:
        return ""
    return (
        f"ending {pods(progress.ending)} of priority {progress.priority}, "
        f"{progress.seconds} s at most"
    )


def describe_left(left: tuple[str, ...]) -> str:
    """The pods that have not ended, not too many of them by name."""
    names = ", ".join(left[:_MOST_NAMES])
    more = f" and {len(left) - _MOST_NAMES} more" if len(left) > _MOST_NAMES else ""
    return f"{pods(len(left))} left: {names}{more}"


def pods(count: int) -> str:
    """So many pods."""
    return "1 pod" if count == 1 else f"{count} pods"
