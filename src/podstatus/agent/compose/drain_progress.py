"""How far a drain is, in words."""

from podstatus.workers.shutdown.manager import ShutdownProgress

_MAX_NAMES = 5


def describe_progress(progress: ShutdownProgress) -> str:
    """What is waited for; empty if for nothing."""
    if not progress.ending:
        return ""
    return (
        f"ending {count_pods(progress.ending)} of priority {progress.priority}, "
        f"{progress.seconds} s at most"
    )


def describe_remaining(remaining: tuple[str, ...]) -> str:
    """The pods that have not ended, not too many of them by name."""
    names = ", ".join(remaining[:_MAX_NAMES])
    more = f" and {len(remaining) - _MAX_NAMES} more" if len(remaining) > _MAX_NAMES else ""
    return f"{count_pods(len(remaining))} left: {names}{more}"


def count_pods(count: int) -> str:
    """So many pods."""
    return "1 pod" if count == 1 else f"{count} pods"
