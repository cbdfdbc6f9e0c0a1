"""Why a process that evaluated rules has ended, and which rule is at fault. Pure.

A process that the kernel ended for its CPU time or that crashed was ended by the rule that it
evaluated. One that was killed from outside was not, unless it happens again with the same rule.
"""

import signal
from collections import Counter

import msgspec

from podstatus.alerts.evaluator.budget import OUT_OF_MEMORY_CODE, RULE_SECONDS

_SIGNALS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_CRASHES = frozenset((OUT_OF_MEMORY_CODE, *(-number for number in _SIGNALS)))
MAX_STRIKES = 2
"""Deaths of unknown cause while the same rule is evaluated."""


class WorkerExit(msgspec.Struct, frozen=True, kw_only=True):
    """How the process ended."""

    code: int | None
    """Its exit code, negative if by a signal; None: not at all, it was given up."""
    rules: tuple[str, ...] = ()
    """What it evaluated then."""

    @property
    def problem(self) -> str:
        """What it says about the rule."""
        if self.code == -signal.SIGPROF:
            return (
                f"it takes more than {RULE_SECONDS:g} s of CPU for one pod or node; use fewer "
                "nested loops, and constant patterns in matches()"
            )
        if self.is_crash:
            return "it ends the process that evaluates it; it needs too much memory, perhaps"
        return "the process that evaluates it ends each time"

    @property
    def is_crash(self) -> bool:
        """Whether the process did it to itself."""
        return self.code in _CRASHES

    def __str__(self) -> str:
        """For the log."""
        if self.code is None:
            return "it made no progress"
        if self.code < 0:
            return f"it was ended by {signal.Signals(-self.code).name}"
        return f"it ended with {self.code}"


class DisableRule(msgspec.Struct, frozen=True):
    """The rule is at fault."""

    rule: str
    problem: str


class IsolateRules(msgspec.Struct, frozen=True):
    """One of these is at fault: evaluate each by itself."""

    rules: tuple[str, ...]


class RestartLater(msgspec.Struct, frozen=True):
    """No rule is known to be at fault: start again in a while."""


CrashDecision = DisableRule | IsolateRules | RestartLater


class CrashAttribution:
    """What is known of deaths so far."""

    def __init__(self) -> None:
        self._strikes: Counter[tuple[str, ...]] = Counter()

    def decide(self, death: WorkerExit) -> CrashDecision:
        """What follows from a death."""
        if not death.rules:
            return RestartLater()
        is_own = death.code == -signal.SIGPROF or death.is_crash
        self._strikes[death.rules] += MAX_STRIKES if is_own else 1
        if self._strikes[death.rules] < MAX_STRIKES:
            return RestartLater()
        if len(death.rules) > 1:
            return IsolateRules(death.rules)
        return DisableRule(death.rules[0], death.problem)
