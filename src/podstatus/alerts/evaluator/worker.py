"""The process that evaluates alert rules: `python -m podstatus.alerts.evaluator.worker FD`.

It has a socket as standard input, a page of memory behind FD, and nothing else: no environment,
no files, a bounded memory. It ends when the socket does, or by SIGPROF when one rule takes more CPU
than its budget: CEL is written in C++ and cannot be interrupted in any other way.

Rules are compiled once, here, and evaluated in a fork of this process. When a rule ends the fork,
the next one has all rules compiled already, in a millisecond.
"""

import gc
import mmap
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import structs

from podstatus.alerts.cel.compile import Environments, check_rule, compile_checked
from podstatus.alerts.cel.evaluate import RuleEvaluation
from podstatus.alerts.evaluator.budget import (
    MAX_MEMORY,
    OUT_OF_MEMORY_CODE,
    RULE_SECONDS,
    SLOW_GROUP_SECONDS,
)
from podstatus.alerts.evaluator.ports import EvaluationResult, RuleCheck
from podstatus.alerts.evaluator.wire import (
    PAGE_BYTES,
    ChannelClosedError,
    CheckRequest,
    EvaluateRequest,
    EvaluationProgress,
    EvaluatorEnded,
    LoadRequest,
    RulesLoaded,
    WorkerRequest,
    check_fields,
    encode,
    receive_frame,
    request_decoder,
    send_frame,
)
from podstatus.alerts.model import Rule

_MAX_FILE = 64 * 2**10
"""Bytes of what it may write: last words, to the file that is its standard error."""
_NICE = 5
"""Whatever rules do, the agent comes first."""
_PARENT_CHECK_SECONDS = 0.5
"""Between two looks whether the agent is still there, in a round that takes long."""
_OOM_SCORE = "800"
"""Of all processes of a node this one is missed least."""


class RuleWatchdog:
    """Notes which rules are evaluated, and has the kernel end the process if one takes too long."""

    def __init__(self, progress: EvaluationProgress, check_parent: Callable[[], None]) -> None:
        """`check_parent` is called now and then between two evaluations."""
        self._progress = progress
        self._check_parent = check_parent
        self._parent_checked_at = time.perf_counter()
        self._numbers: dict[str, int] = {}
        self._count = 0
        self._started_at = 0.0
        self._cpu_at_start = 0.0

    def set_rules(self, rules: Sequence[str]) -> None:
        """The names of rules, in the order of their numbers."""
        self._numbers = {name: number for number, name in enumerate(rules)}

    def start(self, rules: Sequence[str]) -> None:
        """One of these rules is evaluated now, or all of them together."""
        self._count += 1
        self._progress.write(self._count, [self._numbers[name] for name in rules])
        self._started_at, self._cpu_at_start = time.perf_counter(), time.process_time()
        if self._started_at - self._parent_checked_at > _PARENT_CHECK_SECONDS:
            self._parent_checked_at = self._started_at
            self._check_parent()
        signal.setitimer(signal.ITIMER_PROF, RULE_SECONDS)

    def cpu_seconds(self) -> float:
        """CPU seconds since `begin`; for what is short, of any clock."""
        passed = time.perf_counter() - self._started_at
        return passed if passed < SLOW_GROUP_SECONDS else time.process_time() - self._cpu_at_start

    def stop(self) -> None:
        """No rule is evaluated now."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._count += 1
        self._progress.write(self._count, ())


class Worker:
    """Does what it is asked for."""

    def __init__(self, watchdog: RuleWatchdog) -> None:
        self._watchdog = watchdog
        self._environments = Environments()
        self._evaluation = RuleEvaluation((), self._environments)

    def handle(self, request: WorkerRequest) -> RuleCheck | RulesLoaded | EvaluationResult:
        """The answer."""
        try:
            match request:
                case CheckRequest(rule=rule):
                    return self._check(rule)
                case LoadRequest():
                    return self._load(request)
                case EvaluateRequest():
                    return self._evaluate(request)
        finally:
            self._watchdog.stop()

    def _check(self, rule: Rule) -> RuleCheck:
        """Field by field, so that the one that takes too long is known."""
        alone = structs.replace(rule, annotations={})
        self._watchdog.set_rules(check_fields(rule))
        self._watchdog.start(("expr",))
        found = [check_rule(alone, self._environments)]
        for name, text in rule.annotations.items():
            one = structs.replace(rule, expression="true", annotations={name: text})
            self._watchdog.start((f"annotations.{name}",))
            found.append(check_rule(one, self._environments))
        flaws = tuple(flaw for check in found for flaw in check.errors)
        problem = next((check.problem for check in found if check.problem), "")
        return RuleCheck(errors=flaws, problem="" if flaws else problem)

    def _load(self, request: LoadRequest) -> RulesLoaded:
        self._watchdog.set_rules([rule.name for rule in request.rules])
        compiled = []
        for rule in request.rules:
            self._watchdog.start((rule.name,))
            compiled.append(compile_checked(rule, self._environments))
        self._watchdog.stop()
        self._evaluation = RuleEvaluation(
            compiled, self._environments, isolated=request.isolated, meter=self._watchdog
        )
        # Forks share what is not touched.
        gc.collect()
        gc.freeze()
        return RulesLoaded()

    def _evaluate(self, request: EvaluateRequest) -> EvaluationResult:
        self._evaluation.disable(request.disabled)
        if request.isolated:
            self._evaluation.isolate_rules()
        return self._evaluation.evaluate(request.subjects)


def serve(channel: socket.socket, worker: Worker) -> None:
    """Check rules, load them, and have them evaluated until the agent is gone."""
    request: WorkerRequest | None = None
    while not isinstance(request, LoadRequest):
        request = _handle_request(channel, worker)
    while (code := _fork(channel, worker)) != 0:
        send_frame(channel, encode(EvaluatorEnded(code)))


def _handle_request(channel: socket.socket, worker: Worker) -> WorkerRequest:
    """One request. Raises ClosedError, and OSError."""
    request: WorkerRequest = request_decoder.decode(receive_frame(channel))
    send_frame(channel, encode(worker.handle(request)))
    return request


def _fork(channel: socket.socket, worker: Worker) -> int:
    """Evaluate rules in a fork of this process; how that ended, 0 if the agent is gone."""
    this = os.getpid()
    if (child := os.fork()) != 0:
        signal.signal(signal.SIGTERM, lambda *_: _kill_fork_and_exit(child))
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = 1
    try:
        while os.getppid() == this:
            _handle_request(channel, worker)
    except (ChannelClosedError, OSError):
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY_CODE
    finally:
        os._exit(code)


def _kill_fork_and_exit(child: int) -> None:
    """The fork first: what is left behind would be a zombie that not every machine reaps."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os._exit(0)


def exit_if_orphaned(channel: socket.socket) -> None:
    """End this process if nothing waits for its answer any more."""
    with suppress(BlockingIOError):
        if not channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            os._exit(0)


def limit_process() -> None:
    """Bound what this process may use; what is not allowed here stays as it is."""
    limits = {
        resource.RLIMIT_AS: MAX_MEMORY,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: _MAX_FILE,
    }
    for limit, most in limits.items():
        resource.setrlimit(limit, (most, most))
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})


def main() -> None:
    """Evaluate rules until the agent is gone."""
    page_file = int(sys.argv[1])
    page = mmap.mmap(page_file, PAGE_BYTES)
    os.close(page_file)
    limit_process()
    with socket.socket(fileno=0) as channel, suppress(ChannelClosedError, OSError):
        watch = RuleWatchdog(EvaluationProgress(page), partial(exit_if_orphaned, channel))
        serve(channel, Worker(watch))


if __name__ == "__main__":
    main()
