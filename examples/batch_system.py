"""A small batch system in place of a real one such as Slurm: jobs wait in a queue for N slots.

    python examples/batch_system.py FOLDER submit [--comment TEXT] COMMAND…
    python examples/batch_system.py FOLDER status [--json]
    python examples/batch_system.py FOLDER cancel JOB

Jobs are processes. There is no daemon: each job has a runner process that waits for a slot, starts
the command, records its exit and ends. All state is in files of the folder, replaced by rename. A
runner holds its job and its slot by file locks, which the kernel releases however the runner ends.
So jobs outlive the process that submitted them. If a runner is killed, its job is lost: its result
is unknown.
"""

import argparse
import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.02
"""How often a runner checks its command, the queue, and for signals."""
KILL_WAIT_SECONDS = 30
"""A cancelled job that still runs after this time is killed; the name is Slurm's."""
SIGNALS = (signal.SIGTERM, signal.SIGKILL)


class JobState(Enum):
    """Lifecycle state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    """It could not be started; `error` says why."""
    CANCELLED = "cancelled"
    """It was removed from the queue before it ran."""
    LOST = "lost"


@dataclass(frozen=True, kw_only=True)
class Job:
    """State of a job; times are nanoseconds since the Unix epoch, 0 for not yet."""

    number: int
    comment: str
    """Identifies the job to its submitter."""
    state: JobState
    submitted: int
    started: int = 0
    ended: int = 0
    exit_code: int = 0
    """128 if it could not be started, 128 + n if signal n killed it."""
    error: str = ""
    cancelled: bool = False
    """Whether `cancel` was called before it ended."""

    @property
    def is_finished(self) -> bool:
        """Whether the job neither runs nor waits."""
        return self.state not in (JobState.QUEUED, JobState.RUNNING)


class BatchSystem:
    """The jobs in a folder. Safe for concurrent use by any number of processes."""

    def __init__(self, folder: Path, *, slots: int = 2) -> None:
        self.folder = folder.absolute()
        self.slots = slots
        self._jobs = self.folder / "jobs"
        self._jobs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.events = self.folder / "events"
        """A named pipe: one line for each job that starts or ends, with its number."""
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self.events, 0o600)

    def submit(self, comment: str, command: Sequence[str], env: Mapping[str, str]) -> Job:
        """Queue a job, or return the existing one with the same comment.

        On return it runs if a slot was free. A job that was cancelled in the queue is ignored.
        """
        with _locked(self.folder / "submitting"):
            same = [job for job in self.jobs() if job.comment == comment]
            existing = next((job for job in same if job.state is not JobState.CANCELLED), None)
            number = existing.number if existing else self._spool(comment, command, env)
        if not _is_held(self._jobs / str(number) / "runner") and not (
            existing and existing.is_finished
        ):
            self._start_runner(number)
        job = self.find(number)
        if job is None:
            raise LookupError(f"job {number} was removed while it was submitted")
        return job

    def jobs(self) -> list[Job]:
        """Return all jobs, sorted by number."""
        numbers = sorted(int(name) for name in os.listdir(self._jobs))  # noqa: PTH208 - names only
        return [job for job in map(self.find, numbers) if job is not None]

    def find(self, number: int) -> Job | None:
        """Return the job, or None if it does not exist."""
        folder = self._jobs / str(number)
        # Check first: a runner that ends after this has written its records.
        has_runner = _is_held(folder / "runner")
        spec, started, ended = (_read(folder / f"{n}.json") for n in ("job", "started", "ended"))
        if spec is None:
            return None
        state = JobState.QUEUED
        if ended is not None:
            state = JobState(ended.pop("state"))
        elif started is not None:
            state = JobState.RUNNING if has_runner else JobState.LOST
        fields = {"comment": spec["comment"], "submitted": spec["submitted"], **(started or {})}
        return Job(number=number, state=state, **fields, **(ended or {}))

    def send(self, number: int, sent: signal.Signals) -> None:
        """Send SIGTERM or SIGKILL to all processes of a job; a queued job is cancelled."""
        with contextlib.suppress(FileNotFoundError):
            (self._jobs / str(number) / sent.name).touch()

    def cancel(self, number: int) -> None:
        """Send SIGTERM to a job, SIGKILL some time later. Raises LookupError."""
        if self.find(number) is None:
            raise LookupError(f"there is no job {number}")
        (self._jobs / str(number) / "cancelled").touch()
        self.send(number, signal.SIGTERM)

    def remove(self, number: int) -> None:
        """Remove the records of a finished job."""
        job = self.find(number)
        if job is not None and job.is_finished:
            removed = self.folder / f"removed-{number}"
            with contextlib.suppress(FileNotFoundError):
                (self._jobs / str(number)).rename(removed)
            shutil.rmtree(removed, ignore_errors=True)

    def _start_runner(self, number: int) -> None:
        """Start the runner; return when it has a slot or waits, for which it closes its output."""
        arguments = (sys.executable, "-I", "-S", __file__, "--run", self.folder, number, self.slots)
        path = self.folder / "runners.log"
        with path.open("ab") as log:
            result = subprocess.run(  # noqa: S603
                [str(argument) for argument in arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                check=False,
            )
        if result.returncode:
            error = path.read_text(errors="replace").splitlines()[-1:]
            raise OSError(f"job {number} has no runner: {''.join(error)} (see {path})")

    def _spool(self, comment: str, command: Sequence[str], env: Mapping[str, str]) -> int:
        number = int((_read(self.folder / "last.json") or {"number": 0})["number"]) + 1
        _write(self.folder / "last.json", {"number": number})
        new = self.folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        now = time.time_ns()
        spec = {"comment": comment, "command": command, "env": dict(env), "submitted": now}
        _write(new / "job.json", spec)
        new.rename(self._jobs / str(number))
        return number


class Runner:
    """Runs one job, in its own process."""

    def __init__(self, batch: BatchSystem, number: int) -> None:
        self._batch = batch
        self._number = number
        self._folder = batch.folder / "jobs" / str(number)

    def run(self) -> None:
        """Wait for a slot, run the command, record the result."""
        with _locked(self._folder / "runner"):
            job = self._batch.find(self._number)
            if job is None or job.is_finished:
                return
            with contextlib.ExitStack() as slot:
                if self._wait_for_slot(slot):
                    self._end(**self._run_command())
                else:
                    self._end(state="cancelled", exit_code=143, error="cancelled in the queue")

    def _wait_for_slot(self, slot: contextlib.ExitStack) -> bool:
        """Wait for a slot; return False if a signal comes first."""
        while not self._signals():
            for index in range(self._batch.slots if self._is_next() else 0):
                lock = _locked(self._batch.folder / f"slot-{index}", wait=False)
                with contextlib.suppress(BlockingIOError):
                    slot.enter_context(lock)
                    return True
            _close_output()
            time.sleep(POLL_SECONDS)
        return False

    def _is_next(self) -> bool:
        waiting = [job.number for job in self._batch.jobs() if job.state is JobState.QUEUED]
        jobs = self._batch.folder / "jobs"
        return self._number == min(n for n in waiting if _is_held(jobs / str(n) / "runner"))

    def _run_command(self) -> dict[str, Any]:
        spec = _read(self._folder / "job.json") or {}
        if not spec.get("command"):
            return {"state": "failed", "exit_code": 128, "error": "no command"}
        try:
            with (self._folder / "output").open("ab") as output:
                process = subprocess.Popen(  # noqa: S603
                    spec["command"],
                    env=spec["env"],
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            return {"state": "failed", "exit_code": 128, "error": str(error)}
        _write(self._folder / "started.json", {"started": time.time_ns()})
        self._publish()
        _close_output()
        # Not reaped before its group is killed: until then the pid cannot be reused.
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            for sent in self._signals():
                os.killpg(process.pid, sent)
            if self._is_overdue():
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        return {"state": "ended", "exit_code": code if code >= 0 else 128 - code}

    def _signals(self) -> list[signal.Signals]:
        """Return the signals sent since the last call."""
        pending = [sent for sent in SIGNALS if (self._folder / sent.name).exists()]
        for sent in pending:
            (self._folder / sent.name).unlink()
        return pending

    def _is_overdue(self) -> bool:
        """Return whether it was cancelled so long ago that it must be killed."""
        cancelled = self._folder / "cancelled"
        return cancelled.exists() and time.time() - cancelled.stat().st_mtime > KILL_WAIT_SECONDS

    def _end(self, **result: Any) -> None:
        cancelled = (self._folder / "cancelled").exists()
        result |= {"cancelled": cancelled, "ended": time.time_ns()}
        _write(self._folder / "ended.json", result)
        self._publish()

    def _publish(self) -> None:
        # Fails without a reader, and if the pipe is full because the reader is stuck.
        with contextlib.suppress(OSError):
            pipe = os.open(self._batch.events, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, f"{self._number}\n".encode())
            finally:
                os.close(pipe)


@contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold an exclusive lock. Raises BlockingIOError if it is held and `wait` is False."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno == errno.EWOULDBLOCK
    return False


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return content


def _write(path: Path, content: Mapping[str, Any]) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(content))
    temporary.rename(path)


def _close_output() -> None:
    """Close the pipe to the submitter, which waits for that."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.close(null)


def run_job(folder: str, number: str, slots: str) -> None:
    """Run a job in a process of its own, which outlives the caller."""
    if os.fork() == 0:
        os.setsid()
        Runner(BatchSystem(Path(folder), slots=int(slots)), int(number)).run()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description="A small batch system.")
    parser.add_argument("folder", type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    submit = commands.add_parser("submit", help="queue a job, and print its number")
    submit.add_argument("--comment", default=f"by hand, {time.time_ns()}")
    submit.add_argument("words", metavar="COMMAND", nargs=argparse.REMAINDER)
    status = commands.add_parser("status", help="list all jobs")
    status.add_argument("--json", action="store_true")
    cancel = commands.add_parser("cancel", help="end a job, or remove it from the queue")
    cancel.add_argument("job", type=int)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    """Run the command line; `--run` is the runner of a job."""
    if arguments[:1] == ["--run"]:
        run_job(*arguments[1:])
        return
    options = parse(arguments)
    batch = BatchSystem(options.folder)
    if options.command == "submit":
        print(batch.submit(options.comment, options.words, os.environ).number)
    elif options.command == "cancel":
        batch.cancel(options.job)
    elif options.json:
        print(json.dumps([{**asdict(job), "state": job.state.value} for job in batch.jobs()]))
    else:
        print(" JOB  STATE      EXIT  COMMENT")
        for job in batch.jobs():
            state = "cancelled" if job.cancelled else job.state.value
            print(f"{job.number:>4}  {state:<9}  {job.exit_code:>4}  {job.error or job.comment}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except LookupError as error:
        sys.exit(f"batch_system: {error}")
