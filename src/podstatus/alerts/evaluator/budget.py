"""How much CPU rules may use: each evaluation, and all rules together in a round.

One evaluation takes some 2 µs. A rule with an expensive pattern takes 2.5 ms, a thousand such
rules seconds for each pod that changes: none is over budget by itself. So a round has a budget
too, and when it is used up the rules that used more than their share are switched off.
"""

from collections.abc import Mapping

RULE_SECONDS = 0.1
"""CPU seconds for one rule about one subject; the kernel ends the process at that."""
MAX_MEMORY = 512 * 2**20
"""Bytes of address space of that process: of 1,000 ordinary rules a quarter is used."""
OUT_OF_MEMORY_CODE = 77
"""Exit code of one that has no memory left."""
_ROUND_SECONDS, _QUESTION_SECONDS = 0.2, 0.02
"""For a round, and for each question in it: a thousand ordinary rules take a quarter of that."""
_MIN_SHARE = 0.0002
"""Seconds for one evaluation that no rule is switched off for, however many rules there are."""
_MIN_USED = 0.001
"""The same in all: a page fault in a cheap rule is no reason."""
SLOW_GROUP_SECONDS = _MIN_SHARE
SLOW_GROUP_TIMES = 3
"""A group of rules that takes so long, so often, is asked one by one: to find out which it is."""
TOO_SLOW_GROUP_SECONDS = 0.005
"""One that takes so long once, too."""


class RoundCosts:
    """What the rules of a round have used of its budget so far."""

    def __init__(self, questions: int, rules: int) -> None:
        self.budget = _ROUND_SECONDS + _QUESTION_SECONDS * questions
        self._share = max(_MIN_SHARE, self.budget / max(1, questions * rules))
        self._left = self.budget
        self._used: dict[str, tuple[float, int]] = {}

    def add(self, seconds: float, rule: str = "") -> bool:
        """A rule, or a group of rules, was evaluated; whether the budget is used up by it."""
        self._left -= seconds
        if rule:
            used, times = self._used.get(rule, (0.0, 0))
            self._used[rule] = used + seconds, times + 1
        return self._left < 0

    def over_share(self) -> Mapping[str, float]:
        """The rules that used more than their share, with seconds for one evaluation.

        The budget begins again: without them the others may go on.
        """
        used, self._used, self._left = self._used, {}, self.budget
        return {
            rule: seconds / times
            for rule, (seconds, times) in used.items()
            if seconds > _MIN_USED and seconds / times > self._share
        }
