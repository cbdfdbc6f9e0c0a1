"""In-place resize of a simulated pod."""

from collections.abc import Iterator, Mapping

from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.cpu_and_memory_limits import pod_limits
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.simulated.model.container_start import resize_attempt
from podstatus.runtime.simulated.model.container_timeline import SimulatedAttempt
from podstatus.runtime.simulated.model.pod_record import SimulatedPodRecord
from podstatus.runtime.simulated.model.script import NEVER


def resize_duration(
    record: SimulatedPodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> int | None:
    """Return how long the resize takes, in ns, according to the scripts; None: it never ends.

    Raises CannotResizeError if the script of one of the attempts has `resize=fail`.
    """
    length = 0
    for _, attempt in _running_attempts(record, pod, containers, now):
        if attempt.script.resize_fails:
            raise CannotResizeError(f"container {attempt.name!r}: its script has resize=fail")
        if attempt.script.resize is None:
            return NEVER
        length = max(length, attempt.script.resize)
    return length


def apply_resize(
    record: SimulatedPodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> SimulatedPodRecord:
    """Return the record with the resources of the pod's spec, for the pod and these attempts."""
    for container, attempt in _running_attempts(record, pod, containers, now):
        record = record.with_replaced_attempt(resize_attempt(attempt, container))
    return structs.replace(record, limits=pod_limits(pod))


def _running_attempts(
    record: SimulatedPodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> Iterator[tuple[Container, SimulatedAttempt]]:
    """Yield the running ones of these attempts, each with its container."""
    running = {attempt.id: attempt for attempt in record.running_attempts(now)}
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        attempt = running.get(containers.get(container.name, ""))
        if attempt is not None:
            yield container, attempt
