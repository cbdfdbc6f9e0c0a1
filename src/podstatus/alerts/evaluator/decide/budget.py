"""CPU budgets: for each evaluation of a rule, and for all rules together in a round.

One evaluation takes about 2 µs. A rule with an expensive regular expression takes 2.5 ms; a
thousand of them take seconds for each pod that changes, though none exceeds its own budget. So a
round has a budget too; when it is exhausted, the rules that used more than their share are
disabled.
"""

from collections.abc import Mapping

RULE_SECONDS = 0.1
"""CPU seconds for one rule and one subject; the kernel kills the process above it."""
MAX_MEMORY = 512 * 2**20
"""Address space of the process, in bytes; 1,000 ordinary rules use a quarter of it."""
OUT_OF_MEMORY_CODE = 77
"""Exit code of a process that ran out of memory."""
_ROUND_SECONDS, _REQUEST_SECONDS = 0.2, 0.02
"""For a round, and for each subject in it: a thousand ordinary rules need a quarter of that."""
_MIN_SHARE = 0.0002
"""Seconds per evaluation for which no rule is disabled, however many rules there are."""
_MIN_USED = 0.001
"""The same for the total of a round: one page fault in a cheap rule is no reason."""
_CHEAP_PART = 0.1
"""The cheapest rules that together used at most this part of the budget are never disabled: the
first evaluation in a new fork also pays for copying pages."""
SLOW_GROUP_SECONDS = _MIN_SHARE
SLOW_GROUP_TIMES = 3
"""A group that takes longer than this so many times is split, to find the slow rule."""
TOO_SLOW_GROUP_SECONDS = 0.005
"""A group that takes longer than this is split at once."""


class RoundCosts:
    """CPU time that the rules of a round have used so far."""

    def __init__(self, requests: int, rules: int) -> None:
        self.budget = _ROUND_SECONDS + _REQUEST_SECONDS * requests
        self._share = max(_MIN_SHARE, self.budget / max(1, requests * rules))
        self._left = self.budget
        self._used: dict[str, tuple[float, int]] = {}

    def add(self, seconds: float, rule: str = "") -> bool:
        """Add the cost of a rule or a group; return whether the budget is exhausted."""
        self._left -= seconds
        if rule:
            used, times = self._used.get(rule, (0.0, 0))
            self._used[rule] = used + seconds, times + 1
        return self._left < 0

    def over_share(self) -> Mapping[str, float]:
        """Return the rules that used more than their share, with their seconds per evaluation.

        Resets the budget: without these rules, the others may continue.
        """
        used, self._used, self._left = self._used, {}, self.budget
        over: dict[str, float] = {}
        cheapest = 0.0
        means = {rule: seconds / times for rule, (seconds, times) in used.items()}
        for rule in sorted(means, key=means.__getitem__):
            seconds, _ = used[rule]
            cheapest += seconds
            is_cheap = cheapest <= self.budget * _CHEAP_PART or seconds <= _MIN_USED
            if means[rule] > self._share and not is_cheap:
                over[rule] = means[rule]
        return over
