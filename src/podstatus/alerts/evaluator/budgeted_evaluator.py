"""Evaluate rules in a child process, within budgets of CPU time and memory.

    with BudgetedEvaluator() as evaluator:
        loaded = load_rules(text, evaluator)
        evaluator.load(rule.rule for rule in loaded.rules if not rule.problem)
        evaluator.evaluate(requests)

A rule that exceeds its budget kills the process. The rule is disabled, the process restarted and
the request repeated. Design: docs/decisions/0043-rule-budgets.md.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

import msgspec

from podstatus.alerts.evaluator.child_process import EvaluatorChild, EvaluatorDiedError
from podstatus.alerts.evaluator.decide.crash_attribution import (
    CrashAttribution,
    DisableRule,
    IsolateRules,
    WorkerExit,
)
from podstatus.alerts.evaluator.ports import (
    EvaluationRequest,
    EvaluationResult,
    EvaluatorError,
    RuleCheck,
    RuleFailed,
    RuleResults,
    SubjectFacts,
)
from podstatus.alerts.evaluator.wire import (
    MAX_FRAME,
    CheckRequest,
    EncodedEvaluateRequest,
    EvaluatorEnded,
    LoadRequest,
    check_decoder,
    check_fields,
    encode,
    evaluate_decoder,
    load_decoder,
)
from podstatus.alerts.model import Rule
from podstatus.alerts.rules.static_checks import CompileDiagnostic
from podstatus.base.backoff import Backoff
from podstatus.base.control_chars import escape_control_chars

logger = logging.getLogger(__name__)

CHECK_SECONDS = 30.0
"""For checking all rules: the rest is not checked and not evaluated."""
_CHECK_TRIES = 3
_MAX_WORKER_EXITS = 20
"""Worker exits in one call, about 3 s; after that the call fails and others get their turn."""
_FRAME_BYTES = 256 * 1024
"""Size of the requests in one frame: about a hundred ordinary pods."""
_STOPPING = "rules are no longer evaluated: the agent is stopping"
_T = TypeVar("_T")


class BudgetedEvaluator:
    """A `RuleChecker` and a `BlockingEvaluator`. One thread at a time; `close` from any thread."""

    def __init__(self, start: Callable[[], EvaluatorChild] = EvaluatorChild) -> None:
        self._start = start
        self._child: EvaluatorChild | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self._attribution = CrashAttribution()
        self._backoff = Backoff(initial_seconds=0.5, max_seconds=30.0)
        self._retry_at = 0.0
        self._check_budget = CHECK_SECONDS
        self._rules: dict[str, Rule] = {}
        self._names: list[str] = []
        """Names of the loaded rules, by their number in the process."""
        self._is_isolated = False
        self._is_loaded = False
        self._disabled: dict[str, str] = {}
        self._newly_disabled: dict[str, str] = {}
        self.child_exits = 0
        """Number of child exits so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._stop_child()

    @property
    def pid(self) -> int | None:
        """The process that evaluates the rules; None while there is none."""
        return None if self._child is None else self._child.pid

    def check(self, rules: Sequence[Rule]) -> Sequence[RuleCheck]:
        return [self._check(rule) for rule in rules]

    def load(self, rules: Iterable[Rule]) -> None:
        """Evaluate these rules from now on."""
        self._rules = {rule.name: rule for rule in rules}
        self._disabled = {}
        if self._is_loaded:
            self._stop_child()

    def evaluate(self, requests: Sequence[EvaluationRequest]) -> EvaluationResult:
        """Evaluate all requests.

        Raises EvaluatorError; rules that were disabled before it are reported by the next result.
        """
        encoded = [_encode(request) for request in requests]
        responses: list[RuleResults] = []
        for frame in _frames([it for it in encoded if isinstance(it, msgspec.Raw)]):
            responses += self._evaluate(frame)
        evaluated = iter(responses)
        results = [
            self._all_failed(request, it) if isinstance(it, RuleFailed) else next(evaluated)
            for request, it in zip(requests, encoded, strict=True)
        ]
        self._backoff = self._backoff.reset()
        disabled, self._newly_disabled = self._newly_disabled, {}
        return EvaluationResult(results=tuple(results), disabled=disabled)

    def close(self) -> None:
        """Stop the process and evaluate nothing any more. From any thread."""
        with self._lock:
            self._is_closed = True
            if self._child is not None:
                self._child.interrupt()

    def _check(self, rule: Rule) -> RuleCheck:
        if self._check_budget <= 0:
            return _failed_check(
                "expr", rule, f"checking the rules took more than {CHECK_SECONDS:g} s"
            )
        began = time.monotonic()
        try:
            return self._request_check(rule)
        except _RuleAtFaultError as fault:
            return _failed_check(fault.rule.rpartition(": ")[2], rule, fault.problem)
        finally:
            self._check_budget -= time.monotonic() - began

    def _request_check(self, rule: Rule) -> RuleCheck:
        """Retry before raising EvaluatorError: the start of an agent depends on it."""
        request = encode(CheckRequest(rule))
        fields = [f"{rule.name}: {field}" for field in check_fields(rule)]
        for _ in range(_CHECK_TRIES - 1):
            try:
                return self._request(request, check_decoder, fields)
            except EvaluatorError:
                if self._is_closed:
                    raise
                time.sleep(max(0.0, self._retry_at - time.monotonic()))
        return self._request(request, check_decoder, fields)

    def _all_failed(self, request: EvaluationRequest, failed: RuleFailed) -> RuleResults:
        scope = request.subject.scope
        rules = [rule for rule in self._rules.values() if rule.name not in self._disabled]
        return {rule.name: failed for rule in rules if rule.scope == scope}

    def _evaluate(self, subjects: Sequence[msgspec.Raw]) -> Sequence[RuleResults]:
        for _ in range(_MAX_WORKER_EXITS):
            try:
                self._load()
                request = EncodedEvaluateRequest(
                    subjects, frozenset(self._disabled), self._is_isolated
                )
                result = self._request(encode(request), evaluate_decoder, self._names)
            except _RuleAtFaultError as fault:
                self._disable_rule(fault.rule, fault.problem)
                continue
            except _IsolateRulesError:
                self._is_isolated = True
                continue
            if len(result.results) != len(subjects):
                raise EvaluatorError("the evaluator process sent an unexpected number of results")
            for rule, problem in result.disabled.items():
                self._disable_rule(rule, problem)
            return result.results
        raise EvaluatorError(
            f"{_MAX_WORKER_EXITS} evaluations in a row exceeded their budget; retrying later"
        )

    def _load(self) -> None:
        """Load the rules if the process is a new one."""
        if self._child is None or not self._is_loaded:
            rules = tuple(rule for rule in self._rules.values() if rule.name not in self._disabled)
            self._names = [rule.name for rule in rules]
            self._request(encode(LoadRequest(rules, self._is_isolated)), load_decoder, self._names)
            self._is_loaded = True

    def _disable_rule(self, rule: str, problem: str) -> None:
        if rule in self._rules and rule not in self._disabled:
            logger.error("alert rule switched off: rule=%s problem=%s", rule, problem)
            self._disabled[rule] = self._newly_disabled[rule] = problem

    def _request(
        self,
        request: bytes,
        decoder: "msgspec.msgpack.Decoder[_T | EvaluatorEnded]",
        names: Sequence[str],
    ) -> _T:
        """Raises EvaluatorError, or an error that names the rules at fault."""
        child = self._ensure_child()
        code: int | None
        try:
            response = child.request(request, decoder)
            if not isinstance(response, EvaluatorEnded):
                return response
            code, numbers = response.code, response.rules
        except EvaluatorDiedError:
            code = self._stop_child()
            numbers = child.progress.read()
        rules = tuple(names[number] for number in numbers if number < len(names))
        if not rules:
            # It died between two requests, so the next fork answers this one. That response must
            # not be taken for the response to the next request.
            self._stop_child()
        raise self._attribute_crash(WorkerExit(code=code, rules=rules))

    def _attribute_crash(self, death: WorkerExit) -> Exception:
        if self._is_closed:
            return EvaluatorError(_STOPPING)
        self.child_exits += 1
        match self._attribution.decide(death):
            case DisableRule(rule=rule, problem=problem):
                return _RuleAtFaultError(rule, problem)
            case IsolateRules():
                return _IsolateRulesError()
            case _:
                self._backoff = self._backoff.failed()
                seconds = self._backoff.delay(random.random())  # noqa: S311 - spreads retries
                self._retry_at = time.monotonic() + seconds
                return EvaluatorError(f"the evaluator process died: {death}")

    def _ensure_child(self) -> EvaluatorChild:
        with self._lock:
            if self._is_closed:
                raise EvaluatorError(_STOPPING)
            if (left := self._retry_at - time.monotonic()) > 0:
                raise EvaluatorError(f"the evaluator process restarts in {left:.1f} s")
            if self._child is None:
                self._child = self._start()
                self._is_loaded = False
            return self._child

    def _stop_child(self) -> int | None:
        with self._lock:
            child, self._child = self._child, None
            self._is_loaded = False
        if child is None:
            return None
        code, output = child.stop()
        if output and not self._is_closed:
            logger.warning(
                "alert evaluator process wrote to stderr: %s", escape_control_chars(output)
            )
        return code


class EvaluatorThread:
    """A `RuleEvaluator` that calls a `BudgetedEvaluator` in a thread. For one event loop."""

    def __init__(self, process: BudgetedEvaluator) -> None:
        self._process = process
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="podstatus-rules")

    async def evaluate(self, requests: Sequence[EvaluationRequest]) -> EvaluationResult:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._process.evaluate, requests)

    def close(self) -> None:
        """Stop the process and the thread, whatever they do."""
        self._process.close()
        self._thread.shutdown(wait=False, cancel_futures=True)


class _RuleAtFaultError(Exception):
    """One rule, or one field of it, killed the process."""

    def __init__(self, rule: str, problem: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.problem = problem


class _IsolateRulesError(Exception):
    """One of several rules killed the process."""


def _failed_check(field: str, rule: Rule, problem: str) -> RuleCheck:
    if field == "expr" and not rule.expression.strip():
        return RuleCheck()  # its file has the error that it has no expr
    return RuleCheck(errors=((field, CompileDiagnostic(problem)),))


def _encode(request: EvaluationRequest) -> msgspec.Raw | RuleFailed:
    try:
        encoded = encode(SubjectFacts(request.subject.scope, request.facts))
    except (OverflowError, UnicodeEncodeError) as error:
        return RuleFailed(f"cannot encode the facts: {error}")
    if len(encoded) > MAX_FRAME // 2:
        return RuleFailed(f"the facts are larger than {MAX_FRAME // 2} bytes")
    return msgspec.Raw(encoded)


def _frames(encoded: Sequence[msgspec.Raw]) -> Iterator[Sequence[msgspec.Raw]]:
    """Split the requests into frames of bounded size."""
    frame: list[msgspec.Raw] = []
    size = 0
    for one in encoded:
        length = len(memoryview(one))
        if frame and size + length > _FRAME_BYTES:
            yield frame
            frame, size = [], 0
        frame.append(one)
        size += length
    if frame:
        yield frame
