"""Why an evaluator process died, and which rule is at fault. Pure.

If the kernel killed the process for its CPU time, or it crashed, the rule that it was evaluating is
at fault. If it was killed from outside, no rule is, unless it happens again with the same rule.
"""

import signal
from collections import Counter

import msgspec

from podstatus.alerts.evaluator.decide.budget import OUT_OF_MEMORY_CODE, RULE_SECONDS

_SIGNALS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_CRASHES = frozenset((OUT_OF_MEMORY_CODE, *(-number for number in _SIGNALS)))
MAX_STRIKES = 2
"""Deaths of unknown cause, while evaluating the same rule, until that rule is at fault."""


class WorkerExit(msgspec.Struct, frozen=True, kw_only=True):
    """How the evaluator process ended."""

    code: int | None
    """Exit code, negative for a signal; None: it was abandoned while running."""
    rules: tuple[str, ...] = ()
    """The rules that it was evaluating."""

    @property
    def problem(self) -> str:
        if self.code == -signal.SIGPROF:
            return (
                f"it takes more than {RULE_SECONDS:g} s of CPU per pod or node; use fewer "
                "nested loops, and constant patterns in matches()"
            )
        if self.is_crash:
            return "it crashes the evaluator process; perhaps it needs too much memory"
        return "the evaluator process dies each time it evaluates this rule"

    @property
    def is_crash(self) -> bool:
        """Whether the process crashed by itself: out of memory, or a fault signal."""
        return self.code in _CRASHES

    def __str__(self) -> str:
        if self.code is None:
            return "it made no progress"
        if self.code < 0:
            return f"it was killed by {signal.Signals(-self.code).name}"
        return f"it exited with {self.code}"


class DisableRule(msgspec.Struct, frozen=True):
    """The rule is at fault: disable it."""

    rule: str
    problem: str


class IsolateRules(msgspec.Struct, frozen=True):
    """One of these rules is at fault: evaluate each by itself."""

    rules: tuple[str, ...]


class RestartLater(msgspec.Struct, frozen=True):
    """No rule is at fault: restart the process after a back-off."""


CrashDecision = DisableRule | IsolateRules | RestartLater


class CrashAttribution:
    """Counts the deaths per rule and decides what to do."""

    def __init__(self) -> None:
        self._strikes: Counter[tuple[str, ...]] = Counter()

    def decide(self, death: WorkerExit) -> CrashDecision:
        if not death.rules:
            return RestartLater()
        is_own = death.code == -signal.SIGPROF or death.is_crash
        self._strikes[death.rules] += MAX_STRIKES if is_own else 1
        if self._strikes[death.rules] < MAX_STRIKES:
            return RestartLater()
        if len(death.rules) > 1:
            return IsolateRules(death.rules)
        return DisableRule(death.rules[0], death.problem)
