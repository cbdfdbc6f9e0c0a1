"""What becomes of a simulated pod that is given other resources."""

from collections.abc import Iterator, Mapping

from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.resource_limits import pod_limits
from podstatus.runtime.simulated.model.container import SimulatedAttempt
from podstatus.runtime.simulated.model.container_start import resize_attempt
from podstatus.runtime.simulated.model.pod_record import SimulatedPodRecord
from podstatus.runtime.simulated.model.script import NEVER


def resize_duration(
    record: SimulatedPodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> int | None:
    """How long it takes, as the scripts of these attempts say; None: it never ends.

    Raises CannotResizeError if one of them cannot be resized.
    """
    length = 0
    for _, attempt in _running_attempts(record, pod, containers, now):
        if attempt.script.resize_fails:
            raise CannotResizeError(f"container {attempt.name!r}: its script says resize=fail")
        if attempt.script.resize is None:
            return NEVER
        length = max(length, attempt.script.resize)
    return length


def apply_resize(
    record: SimulatedPodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> SimulatedPodRecord:
    """The pod as a whole, and these attempts, with what the pod asks for now."""
    for container, attempt in _running_attempts(record, pod, containers, now):
        record = record.with_replaced_attempt(resize_attempt(attempt, container))
    return structs.replace(record, limits=pod_limits(pod))


def _running_attempts(
    record: SimulatedPodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> Iterator[tuple[Container, SimulatedAttempt]]:
    """Those of these attempts that run, with what they are attempts at."""
    running = {attempt.id: attempt for attempt in record.running_attempts(now)}
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        attempt = running.get(containers.get(container.name, ""))
        if attempt is not None:
            yield container, attempt
