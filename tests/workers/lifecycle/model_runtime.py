"""A list as a runtime: executes requests, and fails on requests that must never be made."""

from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.time import Time


class ModelRuntime:
    """The containers of one pod."""

    def __init__(self) -> None:
        self.sandboxes: list[SandboxFacts] = []
        self.attempts: list[ContainerFacts] = []
        self._made = 0
        self._initialized: set[str] = set()

    @property
    def facts(self) -> PodFacts:
        """The attempts, newest first."""
        return PodFacts(
            sandboxes=tuple(reversed(self.sandboxes)), containers=tuple(reversed(self.attempts))
        )

    @property
    def running(self) -> list[ContainerFacts]:
        """Containers that run, or may run."""
        return [a for a in self.attempts if a.state is not ContainerRunState.EXITED]

    @property
    def has_sandbox(self) -> bool:
        """Whether containers can be started."""
        return bool(self.sandboxes) and self.sandboxes[-1].state is SandboxState.READY

    def start_pod(self) -> None:
        """Create a sandbox."""
        assert not self.running, "a sandbox is made while containers run in another"
        assert not self.has_sandbox, "there is a sandbox already"
        self.attempts = [structs.replace(a, active=False) for a in self.attempts]
        self.sandboxes.append(
            SandboxFacts(
                id=f"box-{len(self.sandboxes)}",
                state=SandboxState.READY,
                attempt=len(self.sandboxes),
                ip="10.0.0.1",
            )
        )
        self._initialized = set()

    def start(self, pod: Pod, container: Container, restart_count: int, now: Time) -> None:
        """Start a container; fails if that is not allowed."""
        assert self.has_sandbox, f"{container.name} is started without a sandbox"
        running = [a for a in self.running if a.name == container.name]
        assert not running, f"{container.name} runs already"
        counts = [a.restart_count for a in self.attempts if a.name == container.name]
        assert restart_count not in counts, f"attempt {restart_count} was made before"
        if container in (pod.spec.containers or ()):
            self._check_initialized(pod, container)
        self._made += 1
        self.attempts.append(
            ContainerFacts(
                id=f"fake://{container.name}-{self._made}",
                name=container.name,
                state=ContainerRunState.RUNNING,
                image=container.image,
                created_at=now,
                started_at=now,
                restart_count=restart_count,
            )
        )
        if is_restartable_init_container(container):
            self._initialized.add(container.name)

    def _check_initialized(self, pod: Pod, container: Container) -> None:
        missing = {c.name for c in pod.spec.init_containers or ()} - self._initialized
        assert not missing, f"{container.name} is started before {missing}"

    def end(self, container_id: str, exit_code: int, now: Time) -> None:
        """A container exits."""
        for index, attempt in enumerate(self.attempts):
            if attempt.id == container_id and attempt.state is not ContainerRunState.EXITED:
                self.attempts[index] = structs.replace(
                    attempt,
                    state=ContainerRunState.EXITED,
                    exit_code=exit_code,
                    reason="Error" if exit_code else "Completed",
                    finished_at=now,
                )
                if exit_code == 0 and attempt.active:
                    self._initialized.add(attempt.name)

    def lose(self, container_id: str) -> None:
        """The state of a container becomes unknown."""
        self.attempts = [
            structs.replace(a, state=ContainerRunState.UNKNOWN) if a.id == container_id else a
            for a in self.attempts
        ]

    def remove(self, container_id: str) -> None:
        """Remove an exited attempt."""
        [attempt] = [a for a in self.attempts if a.id == container_id]
        assert attempt.state is ContainerRunState.EXITED, f"{attempt.id} is removed while it runs"
        self.attempts = [a for a in self.attempts if a.id != container_id]

    def stop_pod(self, now: Time) -> None:
        """Stop everything."""
        for attempt in self.running:
            self.end(attempt.id, 137, now)
        self.lose_sandbox()

    def lose_sandbox(self) -> None:
        """The sandbox dies; its containers may outlive it for a while."""
        self.sandboxes = [structs.replace(s, state=SandboxState.NOT_READY) for s in self.sandboxes]

    def remove_pod(self) -> None:
        """Remove everything."""
        assert not self.running, "a pod is removed while it runs"
        self.sandboxes, self.attempts = [], []
