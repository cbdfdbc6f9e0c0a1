"""A small batch system, the stand-in for your Slurm: jobs wait in a queue for one of N slots.

    python examples/batch_system.py FOLDER            list the jobs
    python examples/batch_system.py FOLDER COMMAND…   submit one first

Jobs are processes. There is no daemon: each job has a runner, a process of its own that waits for
a slot, starts the command, records its end and is gone. All state is files in the folder, written
by rename; what a runner holds (its job, its slot) are file locks, which end with it however it
ends. So jobs outlive whoever submitted them. If a runner is killed, its job is lost: nobody can
say what became of it.
"""

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
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

LOOK_SECONDS = 0.02
"""How often a runner looks at its command, at the queue, and for signals."""
SIGNALS = (signal.SIGTERM, signal.SIGKILL)


class JobState(Enum):
    """Where in its life a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    """It could not be started; `why` says more."""
    CANCELLED = "cancelled"
    """It was in the queue until then."""
    LOST = "lost"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as it is now; times are nanoseconds since the Unix epoch, 0 for what was not yet."""

    number: int
    about: str
    """What whoever submitted it wants to know of it later."""
    state: JobState
    submitted: int
    started: int = 0
    ended: int = 0
    code: int = 0
    """The exit code: 128 and the signal for one that was killed."""
    why: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing will come of it any more."""
        return self.state not in (JobState.QUEUED, JobState.RUNNING)


class BatchSystem:
    """The jobs in a folder. Any number of processes may use it at the same time."""

    def __init__(self, folder: Path, *, slots: int = 2) -> None:
        self.folder = folder.absolute()
        self.slots = slots
        self._jobs = self.folder / "jobs"
        self._jobs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.bell = self.folder / "bell"
        """A pipe: the number of each job that leaves the queue or ends, in a line of its own."""
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self.bell, 0o600)

    def submit(self, about: str, command: Sequence[str], env: Mapping[str, str]) -> Job:
        """Put a job into the queue, or find the one that is about the same.

        When this returns, it runs if there was a slot for it. One that was cancelled before it
        ran does not count.
        """
        with _locked(self.folder / "submitting"):
            same = [job for job in self.jobs() if job.about == about]
            known = next((job for job in same if job.state is not JobState.CANCELLED), None)
            number = known.number if known else self._spool(about, command, env)
        if not _is_held(self._jobs / str(number) / "runner") and not (known and known.is_over):
            self._start_runner(number)
        job = self.find(number)
        if job is None:
            raise LookupError(f"job {number} was forgotten while it was submitted")
        return job

    def jobs(self) -> list[Job]:
        """All of them, by number."""
        numbers = sorted(int(name) for name in os.listdir(self._jobs))  # noqa: PTH208 - names only
        return [job for job in map(self.find, numbers) if job is not None]

    def find(self, number: int) -> Job | None:
        """One of them, if it is there."""
        folder = self._jobs / str(number)
        # Asked first: a runner that goes after this has left its records.
        has_runner = _is_held(folder / "runner")
        spec, started, ended = (_read(folder / f"{n}.json") for n in ("job", "started", "ended"))
        if spec is None:
            return None
        state = JobState.QUEUED
        if ended is not None:
            state = JobState(ended.pop("state"))
        elif started is not None:
            state = JobState.RUNNING if has_runner else JobState.LOST
        told = {"about": spec["about"], "submitted": spec["submitted"], **(started or {})}
        return Job(number=number, state=state, **told, **(ended or {}))

    def send(self, number: int, sent: signal.Signals) -> None:
        """Send SIGTERM or SIGKILL to all processes of a job; one in the queue leaves it."""
        with contextlib.suppress(FileNotFoundError):
            (self._jobs / str(number) / sent.name).touch()

    def forget(self, number: int) -> None:
        """Remove the records of a job that is over."""
        job = self.find(number)
        if job is not None and job.is_over:
            aside = self.folder / f"forgotten-{number}"
            with contextlib.suppress(FileNotFoundError):
                (self._jobs / str(number)).rename(aside)
            shutil.rmtree(aside, ignore_errors=True)

    def _start_runner(self, number: int) -> None:
        """Come back when it knows whether the job has to wait: then it closes its output."""
        words = (sys.executable, "-I", "-S", __file__, "--run", self.folder, number, self.slots)
        path = self.folder / "runners.log"
        with path.open("ab") as log:
            done = subprocess.run(  # noqa: S603
                [str(word) for word in words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                check=False,
            )
        if done.returncode:
            why = path.read_text(errors="replace").splitlines()[-1:]
            raise OSError(f"job {number} has no runner: {''.join(why)} (see {path})")

    def _spool(self, about: str, command: Sequence[str], env: Mapping[str, str]) -> int:
        number = int((_read(self.folder / "last.json") or {"number": 0})["number"]) + 1
        _write(self.folder / "last.json", {"number": number})
        new = self.folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        spec = {"about": about, "command": command, "env": dict(env), "submitted": time.time_ns()}
        _write(new / "job.json", spec)
        new.rename(self._jobs / str(number))
        return number


class Runner:
    """Takes a job through its life, in a process of its own."""

    def __init__(self, batch: BatchSystem, number: int) -> None:
        self._batch = batch
        self._number = number
        self._folder = batch.folder / "jobs" / str(number)

    def run(self) -> None:
        """Wait for a slot, run the command, record how it ended."""
        with _locked(self._folder / "runner"):
            job = self._batch.find(self._number)
            if job is None or job.is_over:
                return
            with contextlib.ExitStack() as slot:
                if self._wait_for_slot(slot):
                    self._end(**self._run_command())
                else:
                    self._end(state="cancelled", why="cancelled while it was in the queue")

    def _wait_for_slot(self, slot: contextlib.ExitStack) -> bool:
        """Whether there is one in the end, or a signal came first."""
        while not self._signals():
            for index in range(self._batch.slots if self._is_next() else 0):
                lock = _locked(self._batch.folder / f"slot-{index}", wait=False)
                with contextlib.suppress(BlockingIOError):
                    slot.enter_context(lock)
                    return True
            _close_output()
            time.sleep(LOOK_SECONDS)
        return False

    def _is_next(self) -> bool:
        waiting = [job.number for job in self._batch.jobs() if job.state is JobState.QUEUED]
        jobs = self._batch.folder / "jobs"
        return self._number == min(n for n in waiting if _is_held(jobs / str(n) / "runner"))

    def _run_command(self) -> dict[str, Any]:
        spec = _read(self._folder / "job.json") or {}
        if not spec.get("command"):
            return {"state": "failed", "why": "it has no command"}
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
            return {"state": "failed", "why": str(error)}
        _write(self._folder / "started.json", {"started": time.time_ns()})
        self._ring()
        _close_output()
        # Not waited for before its group is ended: until then its number is nobody else's.
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            for sent in self._signals():
                os.killpg(process.pid, sent)
            time.sleep(LOOK_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        return {"state": "ended", "code": code if code >= 0 else 128 - code}

    def _signals(self) -> list[signal.Signals]:
        """Those that were sent since the last look."""
        found = [sent for sent in SIGNALS if (self._folder / sent.name).exists()]
        for sent in found:
            (self._folder / sent.name).unlink()
        return found

    def _end(self, **told: Any) -> None:
        _write(self._folder / "ended.json", {**told, "ended": time.time_ns()})
        self._ring()

    def _ring(self) -> None:
        # Without a listener there is no reader; with a deaf one the pipe is full.
        with contextlib.suppress(OSError):
            bell = os.open(self._batch.bell, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(bell, f"{self._number}\n".encode())
            finally:
                os.close(bell)


@contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Within this nobody else has it. Raises BlockingIOError if it is not to be waited for."""
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
        found: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return found


def _write(path: Path, content: Mapping[str, Any]) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(content))
    new.rename(path)


def _close_output() -> None:
    """Let go of the pipe to whoever submitted the job, who waits for that."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.close(nothing)


def main(folder: str = "", *words: str) -> None:
    """The command line; with `--run` the runner of a job."""
    if not folder:
        print(__doc__)
        return
    if folder == "--run":
        if os.fork() == 0:
            os.setsid()
            Runner(BatchSystem(Path(words[0]), slots=int(words[2])), int(words[1])).run()
        return
    batch = BatchSystem(Path(folder))
    if words:
        batch.submit(f"by hand, {time.time_ns()}", words, os.environ)
    for job in batch.jobs():
        print(f"{job.number:>4}  {job.state.value:<9}  {job.code:>3}  {job.why or job.about}")


if __name__ == "__main__":
    main(*sys.argv[1:])
