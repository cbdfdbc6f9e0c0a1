"""Progress messages of a drain."""

from podstatus.workers.shutdown.progress import ShutdownProgress

_MAX_NAMES = 5


def describe_progress(progress: ShutdownProgress) -> str:
    """Describe the pods that are terminating now; empty if there are none."""
    if not progress.ending:
        return ""
    return (
        f"terminating {count_pods(progress.ending)} with priority {progress.priority}; "
        f"at most {progress.seconds} s"
    )


def describe_remaining(remaining: tuple[str, ...]) -> str:
    """Describe the pods that have not terminated, at most five of them by name."""
    names = ", ".join(remaining[:_MAX_NAMES])
    more = f" and {len(remaining) - _MAX_NAMES} more" if len(remaining) > _MAX_NAMES else ""
    return f"{count_pods(len(remaining))} left: {names}{more}"


def count_pods(count: int) -> str:
    """Format a number of pods: `1 pod`, `2 pods`."""
    return "1 pod" if count == 1 else f"{count} pods"
