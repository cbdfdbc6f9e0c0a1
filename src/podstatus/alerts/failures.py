"""Of whom rules fail now, and with what."""

from collections import Counter

from podstatus.alerts.alert import Subject
from podstatus.alerts.evaluation import Answers, Failed


class Failures:
    """By rule, those whom it fails of, the latest last."""

    def __init__(self) -> None:
        self._rules: dict[str, dict[str, str]] = {}
        self._subjects: dict[str, frozenset[str]] = {}
        """The rules that fail of each subject."""
        self._counts: Counter[str] = Counter()

    def note(self, key: str, subject: Subject, answers: Answers) -> None:
        """What rules were asked of a subject, and said. What is not among it has not failed."""
        now = {rule: it.problem for rule, it in answers.items() if isinstance(it, Failed)}
        if not now and key not in self._subjects:
            return
        self.forget(key)
        for rule, problem in now.items():
            self._rules.setdefault(rule, {})[key] = f"{_named(subject)}: {problem}"
            self._counts[rule] += 1
        if now:
            self._subjects[key] = frozenset(now)

    def forget(self, key: str) -> None:
        """The subject is not there any more, or nothing fails of it."""
        for rule in self._subjects.pop(key, ()):
            del self._rules[rule][key]

    def count(self, rule: str) -> int:
        """How often a rule has failed."""
        return self._counts[rule]

    def of(self, rule: str) -> tuple[int, str]:
        """How many a rule fails of, and what it says of the latest of them."""
        failing = self._rules.get(rule) or {}
        return len(failing), next(reversed(failing.values()), "")


def _named(subject: Subject) -> str:
    name = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
    return f"{subject.scope} {name}"
