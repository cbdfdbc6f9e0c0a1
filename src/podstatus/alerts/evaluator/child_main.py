"""The evaluator process: `python -m podstatus.alerts.evaluator.child_main FD`.

Its standard input is a socket, FD a shared memory page. It has no other files, no environment and
bounded memory. It exits when the socket closes, or by SIGPROF when a rule exceeds its CPU budget:
CEL is a C++ library and cannot be interrupted in any other way.

Rules are compiled once, in this process, and evaluated in a fork. When a rule kills the fork, the
next one has all rules compiled and starts within a millisecond.
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

from podstatus.alerts.cel.compile_rule import Environments, check_rule, compile_checked
from podstatus.alerts.cel.evaluate import RuleEvaluation
from podstatus.alerts.evaluator.decide.budget import (
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
    EvaluatorRequest,
    LoadRequest,
    RulesLoaded,
    check_fields,
    encode,
    receive_frame,
    request_decoder,
    send_frame,
)
from podstatus.alerts.model import Rule

_MAX_FILE = 64 * 2**10
"""Maximum size of the file that is its standard error, in bytes."""
_NICE = 5
"""Niceness: the agent has priority over the rules."""
_PARENT_CHECK_SECONDS = 0.5
"""Between two checks that the agent still runs, in a long round."""
_OOM_SCORE = "800"
"""Among the processes of a node, this one is killed first."""


class RuleWatchdog:
    """Records which rules are evaluated, and has the kernel kill the process if one is too slow."""

    def __init__(self, progress: EvaluationProgress, check_parent: Callable[[], None]) -> None:
        """`check_parent` is called between two evaluations, every `_PARENT_CHECK_SECONDS`."""
        self._progress = progress
        self._check_parent = check_parent
        self._parent_checked_at = time.perf_counter()
        self._numbers: dict[str, int] = {}
        self._count = 0
        self._started_at = 0.0
        self._cpu_at_start = 0.0

    def set_rules(self, rules: Sequence[str]) -> None:
        """Set the names of the rules, in the order of their numbers."""
        self._numbers = {name: number for number, name in enumerate(rules)}

    def start(self, rules: Sequence[str]) -> None:
        self._count += 1
        self._progress.write(self._count, [self._numbers[name] for name in rules])
        self._started_at, self._cpu_at_start = time.perf_counter(), time.process_time()
        if self._started_at - self._parent_checked_at > _PARENT_CHECK_SECONDS:
            self._parent_checked_at = self._started_at
            self._check_parent()
        signal.setitimer(signal.ITIMER_PROF, RULE_SECONDS)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds since `start`; for short evaluations, the elapsed time."""
        passed = time.perf_counter() - self._started_at
        return passed if passed < SLOW_GROUP_SECONDS else time.process_time() - self._cpu_at_start

    def stop(self) -> None:
        """No rule is evaluated from now on."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._count += 1
        self._progress.write(self._count, ())


class ChildEvaluator:
    def __init__(self, watchdog: RuleWatchdog) -> None:
        self._watchdog = watchdog
        self._environments = Environments()
        self._evaluation = RuleEvaluation((), self._environments)

    def handle(self, request: EvaluatorRequest) -> RuleCheck | RulesLoaded | EvaluationResult:
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
        """Check field by field, so that the slow one is known."""
        without_annotations = structs.replace(rule, annotations={})
        self._watchdog.set_rules(check_fields(rule))
        self._watchdog.start(("expr",))
        checks = [check_rule(without_annotations, self._environments)]
        for name, text in rule.annotations.items():
            one = structs.replace(rule, expression="true", annotations={name: text})
            self._watchdog.start((f"annotations.{name}",))
            checks.append(check_rule(one, self._environments))
        errors = tuple(error for check in checks for error in check.errors)
        return RuleCheck(errors=errors)

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
        # Forks share pages that the garbage collector does not touch.
        gc.collect()
        gc.freeze()
        return RulesLoaded()

    def _evaluate(self, request: EvaluateRequest) -> EvaluationResult:
        self._evaluation.disable(request.disabled)
        if request.isolated:
            self._evaluation.isolate_rules()
        return self._evaluation.evaluate(request.subjects)


def serve(channel: socket.socket, evaluator: ChildEvaluator, progress: EvaluationProgress) -> None:
    """Check and load rules, then evaluate them in forks until the agent is gone."""
    request: EvaluatorRequest | None = None
    while not isinstance(request, LoadRequest):
        request = _handle_request(channel, evaluator)
    while (code := _fork(channel, evaluator)) != 0:
        # Before the next fork evaluates anything: its rules would be blamed.
        send_frame(channel, encode(EvaluatorEnded(code, progress.pop())))


def _handle_request(channel: socket.socket, evaluator: ChildEvaluator) -> EvaluatorRequest:
    """Handle one request. Raises ChannelClosedError and OSError."""
    request: EvaluatorRequest = request_decoder.decode(receive_frame(channel))
    send_frame(channel, encode(evaluator.handle(request)))
    return request


def _fork(channel: socket.socket, evaluator: ChildEvaluator) -> int:
    """Evaluate rules in a fork; return its exit code, 0 if the agent is gone."""
    this = os.getpid()
    if (child := os.fork()) != 0:
        signal.signal(signal.SIGTERM, lambda *_: _kill_fork_and_exit(child))
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = 1
    try:
        while os.getppid() == this:
            _handle_request(channel, evaluator)
    except (ChannelClosedError, OSError):
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY_CODE
    finally:
        os._exit(code)


def _kill_fork_and_exit(child: int) -> None:
    """Kill and reap the fork first: an orphan would become a zombie where init does not reap."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os._exit(0)


def exit_if_orphaned(channel: socket.socket) -> None:
    """Exit if the agent has closed the channel."""
    with suppress(BlockingIOError):
        if not channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            os._exit(0)


def limit_process() -> None:
    """Set resource limits, niceness and OOM score, as far as this process is permitted to."""
    limits = {
        resource.RLIMIT_AS: MAX_MEMORY,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: _MAX_FILE,
    }
    for limit, value in limits.items():
        resource.setrlimit(limit, (value, value))
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
        progress = EvaluationProgress(page)
        watchdog = RuleWatchdog(progress, partial(exit_if_orphaned, channel))
        serve(channel, ChildEvaluator(watchdog), progress)


if __name__ == "__main__":
    main()
