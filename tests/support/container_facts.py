"""What a runtime reports, in a line, for tests."""

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.scalars.time import Time
from podstatus.pods.container_status import StartFailure
from podstatus.pods.generate_api_status import generate_api_pod_status

NOW = Time.parse("2024-06-01T12:00:00Z")
RESTART_ALL_OFF = FeatureGates(restart_all_containers_on_container_exits=False)
RULES_OFF = FeatureGates(
    restart_all_containers_on_container_exits=False, container_restart_rules=False
)


def at(clock: str) -> Time:
    """A time of day."""
    return Time.parse(f"2024-06-01T{clock}:00Z")


def runs(name: str, number: int = 0) -> ContainerFacts:
    """The attempt of this number at running a container, which goes on."""
    return ContainerFacts(
        id=f"fake://{name}-{number}",
        name=name,
        state=ContainerRunState.RUNNING,
        created_at=at(f"0{number}:00"),
        started_at=at(f"0{number}:01"),
        image=f"{name}:1",
        image_ref=f"sha256:{name}",
        restart_count=number,
    )


def exited(name: str, exit_code: int = 0, number: int = 0) -> ContainerFacts:
    """An attempt that has ended."""
    return ContainerFacts(
        id=f"fake://{name}-{number}",
        name=name,
        state=ContainerRunState.EXITED,
        created_at=at(f"0{number}:00"),
        started_at=at(f"0{number}:01"),
        finished_at=at(f"0{number}:59"),
        exit_code=exit_code,
        reason="Error" if exit_code else "Completed",
        restart_count=number,
    )


def created(name: str) -> ContainerFacts:
    """A container that was made and not started."""
    return ContainerFacts(id=f"fake://{name}-0", name=name, state=ContainerRunState.CREATED)


def unknown(name: str) -> ContainerFacts:
    """A container of which the runtime cannot say how it is."""
    return ContainerFacts(id=f"fake://{name}-0", name=name, state=ContainerRunState.UNKNOWN)


def status_of(
    pod: Pod,
    *attempts: ContainerFacts,
    failing: dict[str, str] | None = None,
    gates: FeatureGates | None = None,
    terminal: bool = False,
) -> PodStatus:
    """The status of a pod of which its runtime reports these attempts."""
    return generate_api_pod_status(
        pod,
        PodFacts(containers=attempts),
        now=NOW,
        start_failures={
            name: StartFailure(reason=reason, message="try again")
            for name, reason in (failing or {}).items()
        },
        pod_is_terminal=terminal,
        gates=gates or FeatureGates(),
    )


def only(statuses: tuple[ContainerStatus, ...] | None) -> ContainerStatus:
    """The one status there is."""
    assert statuses is not None
    (status,) = statuses
    return status
