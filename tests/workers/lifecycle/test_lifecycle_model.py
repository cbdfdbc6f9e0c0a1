"""In any order of events, no pod gets stuck, returns, or is deleted while it runs.

A source with changing pods, a runtime that loses state, a clock, an agent that restarts in the
middle of a step: the steps are those of the product; the state machine only interleaves them.
"""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.restart_policy import container_should_restart
from podstatus.kube.scalars.time import Time
from podstatus.pods.generate_api_status import generate_api_pod_status
from podstatus.workers.actions.compute import compute_pod_actions
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.actions.model import PodActions
from podstatus.workers.actions.termination_order import termination_order
from podstatus.workers.lifecycle import state_machine as lives
from podstatus.workers.lifecycle.state_machine import Eviction, PodLifecycle, PodWorkerState
from tests.workers.lifecycle.model_runtime import ModelRuntime
from tests.workers.pods import NOW, a_pod, sidecar, with_policy, with_rule

GATES = FeatureGates()
ENOUGH_STEPS = 80
EXITS = st.sampled_from([0, 1, 42])

regulars = st.sampled_from(
    [
        ["a"],
        ["a", "b"],
        [with_policy("a", "Never"), "b"],
        [with_policy("a", "Always")],
        [with_rule("a", "Restart", 42)],
        [with_rule("a", "RestartAllContainers", 42), "b"],
    ]
)
inits = st.sampled_from([[], ["i"], ["i", "j"], [sidecar("s")], [sidecar("s"), "i"]])
policies = st.sampled_from(["Always", "OnFailure", "Never"])


class PodOnANode(RuleBasedStateMachine):
    """One UID: the API object, the agent's lifecycle, and the runtime's state."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.runtime = ModelRuntime()
        self.pod: Pod | None = None
        """The object as the source has it."""
        self.shown = PodStatus()
        """What the API server shows, and the manager has."""
        self.life: PodLifecycle | None = None
        self.crash_loops = CrashLoopBackoff()
        self.ours: set[str] = set()
        """Attempts that we have ended ourselves."""
        self.interrupt_after: int | None = None
        self.written = ""
        """A phase that another client wrote, until it is overwritten."""

    @initialize(containers=regulars, init=inits, policy=policies)
    def a_source_brings_it(
        self, containers: list[str | Container], init: list[str | Container], policy: str
    ) -> None:
        self.template = a_pod(*containers, init=init, policy=policy)
        self._bring()

    # Events outside of the agent

    @precondition(lambda self: self.pod is None and self.life is None)
    @rule()
    def it_comes_back_later(self) -> None:
        self._bring()

    @precondition(lambda self: self.pod is None and self.life is not None)
    @rule()
    def it_comes_back_while_it_is_ending(self) -> None:
        assert self.life is not None
        self.pod, self.shown, self.written = self.template, PodStatus(), ""
        self.life = lives.updated(self.life, self.pod)

    @precondition(lambda self: self.pod is not None)
    @rule(seconds=st.integers(0, 40))
    def it_is_deleted(self, seconds: int) -> None:
        assert self.pod is not None
        metadata = structs.replace(
            self.pod.metadata, deletion_timestamp=self.now, deletion_grace_period_seconds=seconds
        )
        self._update(structs.replace(self.pod, metadata=metadata))

    @precondition(lambda self: self.pod is not None)
    @rule()
    def it_leaves_its_source(self) -> None:
        self.pod = None
        if self.life is not None:
            self.life = lives.removed(self.life)

    @precondition(lambda self: self.pod is not None)
    @rule(image=st.sampled_from(["x:1", "x:2"]))
    def its_image_is_changed(self, image: str) -> None:
        assert self.pod is not None
        first, *others = self.pod.spec.containers or ()
        spec = structs.replace(
            self.pod.spec, containers=(structs.replace(first, image=image), *others)
        )
        self._update(structs.replace(self.pod, spec=spec))

    @precondition(lambda self: self.runtime.running)
    @rule(data=st.data(), exit_code=EXITS)
    def a_container_ends(self, data: st.DataObject, exit_code: int) -> None:
        attempt = data.draw(st.sampled_from(self.runtime.running))
        self.runtime.end(attempt.id, exit_code, self.now)

    @precondition(lambda self: self.runtime.running)
    @rule(data=st.data())
    def a_container_is_lost_sight_of(self, data: st.DataObject) -> None:
        self.runtime.lose(data.draw(st.sampled_from(self.runtime.running)).id)

    @precondition(lambda self: self.runtime.sandboxes)
    @rule()
    def the_sandbox_dies(self) -> None:
        self.runtime.lose_sandbox()

    @precondition(lambda self: self.pod is not None)
    @rule()
    def another_client_writes_phase_failed(self) -> None:
        self.written = "Failed"

    @rule(seconds=st.sampled_from([1, 9, 11, 400]))
    def time_passes(self, seconds: int) -> None:
        self.now = Time(self.now + seconds * 10**9)

    # Steps of the agent

    @precondition(lambda self: self.life is not None)
    @rule()
    def the_node_wants_it_to_end(self) -> None:
        assert self.life is not None
        self.life = lives.evicted(self.life, Eviction(reason="Evicted", message="no room"), 0)

    @rule(after=st.none() | st.integers(0, 3))
    def the_agent_works(self, after: int | None) -> None:
        """One step; it may be interrupted after this number of runtime calls."""
        self.interrupt_after = after
        self._step()

    @rule()
    def the_agent_restarts(self) -> None:
        self.crash_loops = CrashLoopBackoff()
        self.life = None
        if self.pod is not None:
            self.shown = structs.replace(self.shown, phase=self.written or self.shown.phase)
            self.pod = structs.replace(self.pod, status=self.shown)
            self.life = lives.admitted(self.pod, idle=not self.runtime.running)
        elif self.runtime.sandboxes or self.runtime.attempts:
            self.life = lives.orphaned(self.template.uid, "ns", "p")

    @precondition(lambda self: self.pod is not None and self._may_go())
    @rule()
    def the_api_server_lets_it_go(self) -> None:
        """The status manager's deletion, after the final status has arrived."""
        assert self.life is not None
        assert not self.runtime.running, "it is deleted while it runs"
        if self.life.finalized:
            assert not self.runtime.attempts, "what it left was not reclaimed"
        self.it_leaves_its_source()

    @invariant()
    def what_could_run_is_not_said_to_be_over(self) -> None:
        if self.life is not None and not lives.could_have_running_containers(self.life):
            assert not self.runtime.running

    @invariant()
    def what_is_forgotten_has_left_nothing(self) -> None:
        if self.life is None and self.pod is None:
            assert not self.runtime.running

    def teardown(self) -> None:
        """Undisturbed, it reaches the desired state; deleted, it disappears."""
        if self.pod is not None and self.pod.metadata.deletion_timestamp is None:
            self._settle()
            self._check_at_rest()
            if self.pod is not None:
                self.it_is_deleted(0)
        self._settle()
        assert self.life is None, f"it is stuck: {self.life}"
        assert not self.runtime.attempts
        assert self.pod is None

    # Implementation

    def _bring(self) -> None:
        self.pod, self.shown, self.written = self.template, PodStatus(), ""
        self.life = lives.admitted(self.pod, idle=not self.runtime.running)

    def _update(self, pod: Pod) -> None:
        self.pod = pod
        if self.life is not None:
            self.life = lives.updated(self.life, pod)

    def _may_go(self) -> bool:
        return (
            self.pod is not None
            and self.pod.metadata.deletion_timestamp is not None
            and self.life is not None
            and not lives.could_have_running_containers(self.life)
            and is_terminal_phase(self.shown.phase)
        )

    def _step(self) -> None:
        if self.life is None:
            return
        match self.life.state:
            case PodWorkerState.SYNC:
                self._sync()
            case PodWorkerState.TERMINATING:
                self._terminate()
            case PodWorkerState.TERMINATED:
                self._close()
            case PodWorkerState.FINISHED:
                self._forget()

    def _sync(self) -> None:
        assert self.life is not None
        assert self.life.pod is not None
        pod, facts = self.life.pod, self.runtime.facts
        status = self._tell(terminal=False)
        if is_terminal_phase(status.phase):
            self.life = lives.completed(self.life)
            return
        exits = {
            attempt.name: attempt.finished_at
            for attempt in reversed(facts.containers)
            if attempt.state is ContainerRunState.EXITED
        }
        self.crash_loops = self.crash_loops.exited(pod.uid, exits, self.now, self.now)
        actions = compute_pod_actions(
            pod, facts, monotonic=self.now, crash_loop_backoff=self.crash_loops, gates=GATES
        )
        self._act(pod, actions)

    def _act(self, pod: Pod, actions: PodActions) -> None:
        if actions.stop_pod:
            self._stop_all(pod)
        for stop in actions.stop:
            if self._goes_on():
                self.ours.add(stop.container.id)
                self.runtime.end(stop.container.id, 143, self.now)
        for attempt in actions.remove:
            if self._goes_on():
                self.runtime.remove(attempt.id)
        if actions.start_pod and self._goes_on():
            self.runtime.start_pod()
        for start in actions.start:
            if self._goes_on():
                self._check_may_start(pod, start.container)
                self.crash_loops = self.crash_loops.started(
                    pod.uid, start.container.name, start.last_exit, self.now, self.now
                )
                self.runtime.start(pod, start.container, start.restart_count, self.now)

    def _goes_on(self) -> bool:
        """Whether the agent reaches the next runtime call."""
        if self.interrupt_after is None:
            return True
        self.interrupt_after -= 1
        return self.interrupt_after >= 0

    def _check_may_start(self, pod: Pod, container: Container) -> None:
        """Only containers that have not exited for good are restarted."""
        assert self.life is not None
        assert self.life.state is PodWorkerState.SYNC
        last = self.runtime.facts.find_container(container.name)
        if last is None or last.id in self.ours or not last.active:
            return
        assert last.state is ContainerRunState.EXITED
        assert container_should_restart(container, pod.spec, last.exit_code, GATES), last

    def _stop_all(self, pod: Pod | None) -> None:
        for wave in termination_order(pod, self.runtime.facts):
            for attempt in wave:
                if not self._goes_on():
                    return
                self.ours.add(attempt.id)
                self.runtime.end(attempt.id, 143, self.now)
        if self._goes_on():
            self.runtime.stop_pod(self.now)

    def _terminate(self) -> None:
        assert self.life is not None
        self._stop_all(self.life.pod)
        if not self.runtime.running:
            self._tell(terminal=True)
            self.life = lives.terminated(self.life)

    def _close(self) -> None:
        assert self.life is not None
        if self.life.pod is not None and not self.life.source_removed:
            status = self._tell(terminal=True)
            ended = status.phase if is_terminal_phase(status.phase) else "Failed"
            self.shown = structs.replace(status, phase=ended)
        if self.life.deleted:
            self.runtime.remove_pod()
        self.life = lives.finalized(self.life, cleaned_up=self.life.deleted)

    def _forget(self) -> None:
        assert self.life is not None
        if not lives.is_forgettable(self.life):
            return
        returns, self.life = self.life.recreated_as, None
        if returns is not None:
            self.life = lives.admitted(returns, idle=not self.runtime.running)

    def _tell(self, *, terminal: bool) -> PodStatus:
        """The status; the API server gets a terminal phase only when no container can run."""
        assert self.life is not None
        if self.life.pod is None or self.life.source_removed:
            return PodStatus()
        status = generate_api_pod_status(
            self.life.pod,
            self.runtime.facts,
            now=self.now,
            old_status=self.shown,
            pod_is_terminal=terminal,
            gates=GATES,
        )
        held_back = is_terminal_phase(status.phase) and not terminal
        self.shown = structs.replace(status, phase=self.shown.phase) if held_back else status
        self.written = ""
        return status

    def _settle(self) -> None:
        """Time passes, init containers succeed, and the agent is not interrupted."""
        self.interrupt_after = None
        for _ in range(ENOUGH_STEPS):
            self.now = Time(self.now + 10 * 10**9)
            for attempt in self.runtime.running:
                if attempt.name in ("i", "j"):
                    self.runtime.end(attempt.id, 0, self.now)
            if self._may_go():
                self.the_api_server_lets_it_go()
            self._step()

    def _check_at_rest(self) -> None:
        if self.life is None or self.life.state is not PodWorkerState.SYNC:
            assert self.life is not None
            assert self.life.state is PodWorkerState.FINISHED
            assert is_terminal_phase(self.shown.phase)
            assert not self.runtime.running
            return
        assert self.shown.phase == "Running"
        assert self.life.pod is not None
        spec = self.life.pod.spec
        for container in spec.containers or ():
            newest = self.runtime.facts.find_container(container.name)
            assert newest is not None, f"{container.name} was not started"
            assert self._is_settled(container, newest), newest

    def _is_settled(self, container: Container, newest: ContainerFacts) -> bool:
        """The pod runs as the spec requires, or has finished."""
        assert self.life is not None
        assert self.life.pod is not None
        if newest.state is ContainerRunState.RUNNING:
            return newest.image == container.image
        return newest.state is ContainerRunState.EXITED and not container_should_restart(
            container, self.life.pod.spec, newest.exit_code, GATES
        )


TestPodOnANode = PodOnANode.TestCase
TestPodOnANode.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
