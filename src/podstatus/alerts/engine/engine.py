"""The alert engine: which alerts are active, and for which subjects rules fail.

The engine is given answers and the time, and returns the alerts that changed. It retains active
alerts: pending or firing. No rule is evaluated twice about the same facts: what depends on time
alone, such as a `for` that expires, waits in a heap. Where rules are evaluated: alerts.evaluator.

A rule that fails for a subject leaves the alert of that subject unchanged, and so does a rule that
cannot be evaluated at all. An alert restored after a restart waits until its subject is evaluated,
and does not resolve while its rule uses facts that are still warming up.

Called from one thread.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from podstatus.alerts.engine import state_machine
from podstatus.alerts.engine.active_alerts import Living, LivingAlerts, subject_key
from podstatus.alerts.engine.timers import Deadlines
from podstatus.alerts.evaluator.ports import Answer, Answers, Failed, Held
from podstatus.alerts.model import Alert, AlertId, Rule, RuleState, Scope, Subject
from podstatus.alerts.rules.load import LoadedRule


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


_TOO_EARLY = Failed("nobody can say yet that it is over")


class Engine:
    """All rules, and the alerts that they make."""

    def __init__(self, rules: Sequence[LoadedRule], *, era: str = "") -> None:
        """`era` tells the ids of alerts from those of an earlier life of the agent."""
        self._era = era
        self._rules = {loaded.rule.name: loaded for loaded in rules}
        self._off: dict[str, str] = {}
        """Rules that were over budget, and why they were switched off."""
        self._living = LivingAlerts()
        self._failures = Failures()
        self._deadlines: Deadlines[tuple[str, str]] = Deadlines()
        self._begun = 0
        self._latest = 0

    @property
    def switched_off(self) -> Sequence[str]:
        """Rules that were over budget, in the order in which that was found out."""
        return tuple(self._off)

    def switch_off(self, rule: str, problem: str) -> None:
        """A rule was over budget: it is not asked any more, and its alerts stay as they are."""
        if rule in self._rules:
            self._off[rule] = problem
            for key, name in self._deadlines.waiting():
                if name == rule:
                    self._deadlines.cancel((key, name))

    def apply(
        self, subject: Subject, answers: Answers, now: int, *, young: frozenset[str] = frozenset()
    ) -> list[Alert]:
        """All rules were evaluated about the subject; the alerts that changed by it.

        `young`: names of facts that do not say yet that something is over.
        """
        self._look_at_clock(now)
        key = subject_key(subject)
        answers = dict(answers)
        self._failures.note(key, subject, answers)
        living = self._living.of(key)
        if not answers and not living:
            return []
        self._living.meet(key)
        for name, known in living.items():
            if name not in answers and self._may_hold(known, young):
                answers[name] = _TOO_EARLY
        concerned = [name for name in {**living, **answers} if self._can_ask(name, subject.scope)]
        steps = [self._step(name, subject, answers.get(name), now) for name in concerned]
        return [alert for alert in steps if alert is not None]

    def gone(self, subject: Subject, now: int) -> list[Alert]:
        """The subject is not there any more: its alerts are over."""
        key = subject_key(subject)
        self._failures.forget(key)
        return [self._end(key, rule, now) for rule in list(self._living.of(key))]

    def synced(self, scope: Scope, now: int) -> list[Alert]:
        """All subjects that there are were told: alerts of others are over, or of rules gone."""
        over = [
            known.alert
            for known in self._living
            if known.alert.subject.scope == scope
            and not (known.told and self._is_known(known.alert.rule, scope))
        ]
        return [self._end(subject_key(alert.subject), alert.rule, now) for alert in over]

    def due(self) -> int | None:
        """When `run_out` is to be called next; None: not before something is told."""
        return self._deadlines.first()

    def run_out(self, now: int) -> list[Alert]:
        """The alerts that changed because their time has come."""
        self._look_at_clock(now)
        changed = []
        for key, rule in self._deadlines.pop_until(now):
            known = self._living.of(key)[rule]
            pending = known.alert.state == "pending"
            changed.append(self._fire(known, now) if pending else self._end(key, rule, now))
        return changed

    def set_ahead(self, nanos: int) -> list[Alert]:
        """The clock was set ahead by so much: what waits does so for that much longer."""
        changed = []
        for known in self._living:
            before, known.alert = known.alert, state_machine.move_ahead(known.alert, nanos)
            if known.alert is not before:
                changed.append(known.alert)
        self._wait_anew()
        return changed

    def restore(self, alerts: Iterable[Alert]) -> None:
        """Alerts of an earlier life of the agent. They wait until their subjects are told."""
        for alert in alerts:
            if not alert.resolved:
                self._living.put(Living(alert, told=False, is_earlier=True))

    def has_earlier(self, subject: Subject) -> bool:
        """Whether it has alerts that began in an earlier life of the agent."""
        return any(known.is_earlier for known in self._living.of(subject_key(subject)).values())

    def met(self) -> list[Alert]:
        """Those of an earlier life that fire on: their subjects were told since this was asked."""
        return [alert for alert in self._living.met() if alert.state == "firing"]

    def alerts(self) -> Mapping[AlertId, Alert]:
        """Those that are pending or firing."""
        return {known.alert.id: known.alert for known in self._living}

    def rules(self) -> Sequence[RuleState]:
        """How each rule fares, in the order of their files."""
        counts = Counter((alert.rule, alert.state) for alert in self.alerts().values())
        states = []
        for name, loaded in self._rules.items():
            failing, problem = self._failures.of(name)
            off = f"switched off: {self._off[name]}" if name in self._off else ""
            states.append(
                RuleState(
                    name=name,
                    scope=loaded.rule.scope,
                    pending=counts[name, "pending"],
                    firing=counts[name, "firing"],
                    problem=loaded.problem or off or problem,
                    failing=failing,
                    failures=self._failures.count(name),
                    switched_off=name in self._off,
                )
            )
        return states

    def _may_hold(self, known: Living, young: frozenset[str]) -> bool:
        loaded = self._rules.get(known.alert.rule)
        return loaded is not None and known.may_hold(loaded.rule, young)

    def _step(self, name: str, subject: Subject, answer: Answer | None, now: int) -> Alert | None:
        """A rule was asked of a subject; its alert, if that is another now."""
        key, rule = subject_key(subject), self._rules[name].rule
        known = self._living.of(key).get(name)
        if isinstance(answer, Failed):
            # Time does nothing to its alert until it can be asked again.
            self._deadlines.cancel((key, name))
            return None
        if known is None:
            return None if answer is None else self._begin(rule, subject, answer, now)
        before = known.alert
        known.alert = state_machine.move_back(before, now)
        if answer is None:
            return self._cease(known, rule, now)
        if known.alert.state == "pending":
            known.alert = state_machine.move_to(known.alert, rule, subject)
            known.annotations = answer.annotations
            self._wait_or_fire(known, rule, now)
        elif known.alert.ceased:
            known.alert = state_machine.hold_again(known.alert)
            self._deadlines.cancel((key, name))
        return known.alert if known.alert is not before else None

    def _begin(self, rule: Rule, subject: Subject, held: Held, now: int) -> Alert:
        self._begun += 1
        alert = state_machine.begin(rule, subject, now, f"{self._era}-{self._begun}")
        known = Living(alert, held.annotations)
        self._living.put(known)
        self._wait_or_fire(known, rule, now)
        return known.alert

    def _wait_or_fire(self, known: Living, rule: Rule, now: int) -> None:
        due = state_machine.due(known.alert, rule)
        if due is not None and due <= now:
            self._fire(known, now)
        else:
            self._wait(known, rule)

    def _cease(self, known: Living, rule: Rule, now: int) -> Alert | None:
        key, before = subject_key(known.alert.subject), known.alert
        if before.state == "pending":
            return self._end(key, rule.name, now)
        if not before.ceased:
            known.alert = state_machine.cease(before, now)
        due = state_machine.due(known.alert, rule)
        if due is None or due <= now:
            return self._end(key, rule.name, now)
        self._wait(known, rule)
        return known.alert if known.alert is not before else None

    def _fire(self, known: Living, now: int) -> Alert:
        alert = known.alert
        known.alert, known.annotations = state_machine.fire(alert, known.annotations, now), {}
        self._deadlines.cancel((subject_key(alert.subject), alert.rule))
        return known.alert

    def _end(self, key: str, rule: str, now: int) -> Alert:
        known = self._living.pop(key, rule)
        self._deadlines.cancel((key, rule))
        return state_machine.resolve(known.alert, now)

    def _wait(self, known: Living, rule: Rule) -> None:
        due = state_machine.due(known.alert, rule)
        if due is not None:
            self._deadlines.set((subject_key(known.alert.subject), rule.name), due)

    def _look_at_clock(self, now: int) -> None:
        """If the clock went back, nothing waits for longer than its rule says."""
        if now < self._latest:
            for known in self._living:
                known.alert = state_machine.move_back(known.alert, now)
            self._wait_anew()
        self._latest = now

    def _wait_anew(self) -> None:
        for key, rule in self._deadlines.waiting():
            self._wait(self._living.of(key)[rule], self._rules[rule].rule)

    def _is_known(self, rule: str, scope: Scope) -> bool:
        return rule in self._rules and self._rules[rule].rule.scope == scope

    def _can_ask(self, rule: str, scope: Scope) -> bool:
        is_right = self._is_known(rule, scope) and not self._rules[rule].problem
        return is_right and rule not in self._off
