"""A node whose pods are jobs of a batch system: python bridge.py KUBECONFIG SPOOL."""

import sys
import time
from functools import partial
from pathlib import Path

from batch_system import BatchSystem, Job, JobState
from own_node import run_node, run_until_interrupted

import podstatus as ps
from podstatus import ContainerRunState as State

STATES = {JobState.RUNNING: State.RUNNING, JobState.LOST: State.UNKNOWN}


def facts(job: Job | None, name: str) -> ps.PodFacts:
    """Translate a job into the facts of a container. A queued job is not a container yet."""
    if job is None or job.state is JobState.QUEUED:
        return ps.PodFacts()
    container = ps.ContainerFacts(
        id=f"batch://{job.number}",
        name=name,
        state=STATES.get(job.state, State.EXITED),
        started_at=ps.Time.from_unix_nanos(job.started),
        finished_at=ps.Time.from_unix_nanos(job.ended),
        exit_code=job.exit_code,
        reason="Cancelled" if job.cancelled else "Error" if job.exit_code else "Completed",
        message=job.error,
    )
    return ps.PodFacts(containers=(container,))


class Bridge:
    """Runs each pod as a job, whose comment is the UID of the pod."""

    def __init__(self, spool: Path) -> None:
        self.batch = BatchSystem(spool)
        self.outbox = ps.FileOutbox(spool / "outbox", ps.OutboxEntry)
        self.jobs = {job.comment: job for job in self.batch.jobs()}

    def could_have_running_containers(self, pod: ps.Pod) -> bool:
        """Tell the manager whether it must hold the final phase back."""
        return pod.uid in self.jobs and not self.jobs[pod.uid].is_finished

    def report(self, manager: ps.StatusManager, pods: ps.PodManager) -> None:
        """Submit and cancel jobs, and report the state of each pod."""
        self.jobs = {job.comment: job for job in self.batch.jobs()}
        for pod in pods.pods():
            old, is_deleted = manager.latest_status(pod), bool(pod.metadata.deletion_timestamp)
            main = (pod.spec.containers or ())[0]
            if old.start_time is None and not is_deleted:
                command = [*(main.command or ()), *(main.args or ())]
                env = {variable.name: variable.value for variable in main.env or ()}
                self.jobs[pod.uid] = self.batch.submit(pod.uid, command, env)
            job = self.jobs.get(pod.uid)
            is_over = job is None or job.is_finished
            if is_deleted and job is not None and not job.is_finished:
                self.batch.cancel(job.number)
            if old.phase not in ("Succeeded", "Failed"):
                status = ps.generate_api_pod_status(
                    pod,
                    facts(job, main.name),
                    now=ps.Time.from_unix_nanos(time.time_ns()),
                    old_status=old,
                    start_failures={main.name: ps.StartFailure(reason="Queued")},
                    pod_is_terminal=is_over,
                )
                manager.set_pod_status(pod, status)
            if is_over:
                manager.terminate_pod(pod)


if __name__ == "__main__":
    bridge = Bridge(Path(sys.argv[2]))
    make_manager = partial(ps.StatusManager, safety=bridge, outbox=bridge.outbox)
    run_until_interrupted(run_node("batch", Path(sys.argv[1]), make_manager, bridge.report))
