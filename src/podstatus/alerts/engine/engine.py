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
from podstatus.alerts.engine.active_alerts import ActiveAlert, ActiveAlerts, subject_key
from podstatus.alerts.engine.timers import TimerHeap
from podstatus.alerts.evaluator.ports import RuleFailed, RuleHolds, RuleResult, RuleResults
from podstatus.alerts.model import Alert, AlertId, Rule, RuleState, Scope, Subject
from podstatus.alerts.rules.load import LoadedRule


class RuleFailures:
    """By rule, those whom it fails of, the latest last."""

    def __init__(self) -> None:
        self._rules: dict[str, dict[str, str]] = {}
        self._subjects: dict[str, frozenset[str]] = {}
        """The rules that fail of each subject."""
        self._counts: Counter[str] = Counter()

    def record(self, key: str, subject: Subject, answers: RuleResults) -> None:
        """What rules were asked of a subject, and said. What is not among it has not failed."""
        now = {rule: it.problem for rule, it in answers.items() if isinstance(it, RuleFailed)}
        if not now and key not in self._subjects:
            return
        self.forget(key)
        for rule, problem in now.items():
            self._rules.setdefault(rule, {})[key] = f"{_format_subject(subject)}: {problem}"
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

    def latest(self, rule: str) -> tuple[int, str]:
        """How many a rule fails of, and what it says of the latest of them."""
        failing = self._rules.get(rule) or {}
        return len(failing), next(reversed(failing.values()), "")


def _format_subject(subject: Subject) -> str:
    name = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
    return f"{subject.scope} {name}"


_WARMING_UP = RuleFailed("nobody can say yet that it is over")


class Engine:
    """All rules, and the alerts that they make."""

    def __init__(self, rules: Sequence[LoadedRule], *, instance_id: str = "") -> None:
        """`instance_id` tells the ids of alerts from those of an earlier life of the agent."""
        self._instance_id = instance_id
        self._rules = {loaded.rule.name: loaded for loaded in rules}
        self._disabled: dict[str, str] = {}
        """Rules that were over budget, and why they were switched off."""
        self._active = ActiveAlerts()
        self._failures = RuleFailures()
        self._timers: TimerHeap[tuple[str, str]] = TimerHeap()
        self._activations = 0
        self._last_now = 0

    @property
    def disabled_rules(self) -> Sequence[str]:
        """Rules that were over budget, in the order in which that was found out."""
        return tuple(self._disabled)

    def disable_rule(self, rule: str, problem: str) -> None:
        """A rule was over budget: it is not asked any more, and its alerts stay as they are."""
        if rule in self._rules:
            self._disabled[rule] = problem
            for key, name in self._timers.pending_keys():
                if name == rule:
                    self._timers.cancel((key, name))

    def apply(
        self,
        subject: Subject,
        answers: RuleResults,
        now: int,
        *,
        warming_up: frozenset[str] = frozenset(),
    ) -> list[Alert]:
        """All rules were evaluated about the subject; the alerts that changed by it.

        `warming_up`: names of facts that do not say yet that something is over.
        """
        self._check_clock(now)
        key = subject_key(subject)
        answers = dict(answers)
        self._failures.record(key, subject, answers)
        living = self._active.for_subject(key)
        if not answers and not living:
            return []
        self._active.mark_subject_seen(key)
        for name, known in living.items():
            if name not in answers and self._may_still_hold(known, warming_up):
                answers[name] = _WARMING_UP
        concerned = [
            name for name in {**living, **answers} if self._can_evaluate(name, subject.scope)
        ]
        steps = [self._update_alert(name, subject, answers.get(name), now) for name in concerned]
        return [alert for alert in steps if alert is not None]

    def subject_removed(self, subject: Subject, now: int) -> list[Alert]:
        """The subject is not there any more: its alerts are over."""
        key = subject_key(subject)
        self._failures.forget(key)
        return [self._resolve(key, rule, now) for rule in list(self._active.for_subject(key))]

    def all_known(self, scope: Scope, now: int) -> list[Alert]:
        """All subjects that there are were told: alerts of others are over, or of rules gone."""
        over = [
            known.alert
            for known in self._active
            if known.alert.subject.scope == scope
            and not (known.is_subject_seen and self._has_rule(known.alert.rule, scope))
        ]
        return [self._resolve(subject_key(alert.subject), alert.rule, now) for alert in over]

    def next_due(self) -> int | None:
        """When `run_out` is to be called next; None: not before something is told."""
        return self._timers.next_due()

    def advance(self, now: int) -> list[Alert]:
        """The alerts that changed because their time has come."""
        self._check_clock(now)
        changed = []
        for key, rule in self._timers.pop_due(now):
            known = self._active.for_subject(key)[rule]
            pending = known.alert.state == "pending"
            changed.append(self._fire(known, now) if pending else self._resolve(key, rule, now))
        return changed

    def step_clock(self, nanos: int) -> list[Alert]:
        """The clock was set ahead by so much: what waits does so for that much longer."""
        changed = []
        for known in self._active:
            before, known.alert = known.alert, state_machine.shift_times(known.alert, nanos)
            if known.alert is not before:
                changed.append(known.alert)
        self._reschedule_all()
        return changed

    def restore(self, alerts: Iterable[Alert]) -> None:
        """Alerts of an earlier life of the agent. They wait until their subjects are told."""
        for alert in alerts:
            if not alert.resolved:
                self._active.put(ActiveAlert(alert, is_subject_seen=False, is_restored=True))

    def has_restored(self, subject: Subject) -> bool:
        """Whether it has alerts that began in an earlier life of the agent."""
        return any(
            known.is_restored for known in self._active.for_subject(subject_key(subject)).values()
        )

    def resumed(self) -> list[Alert]:
        """Those of an earlier life that fire on: their subjects were told since this was asked."""
        return [alert for alert in self._active.pop_resumed() if alert.state == "firing"]

    def alerts(self) -> Mapping[AlertId, Alert]:
        """Those that are pending or firing."""
        return {known.alert.id: known.alert for known in self._active}

    def rules(self) -> Sequence[RuleState]:
        """How each rule fares, in the order of their files."""
        counts = Counter((alert.rule, alert.state) for alert in self.alerts().values())
        states = []
        for name, loaded in self._rules.items():
            failing, problem = self._failures.latest(name)
            off = f"switched off: {self._disabled[name]}" if name in self._disabled else ""
            states.append(
                RuleState(
                    name=name,
                    scope=loaded.rule.scope,
                    pending=counts[name, "pending"],
                    firing=counts[name, "firing"],
                    problem=loaded.problem or off or problem,
                    failing=failing,
                    failures=self._failures.count(name),
                    switched_off=name in self._disabled,
                )
            )
        return states

    def _may_still_hold(self, active: ActiveAlert, warming_up: frozenset[str]) -> bool:
        loaded = self._rules.get(active.alert.rule)
        return loaded is not None and active.may_still_hold(loaded.rule, warming_up)

    def _update_alert(
        self, name: str, subject: Subject, answer: RuleResult | None, now: int
    ) -> Alert | None:
        """A rule was asked of a subject; its alert, if that is another now."""
        key, rule = subject_key(subject), self._rules[name].rule
        known = self._active.for_subject(key).get(name)
        if isinstance(answer, RuleFailed):
            # Time does nothing to its alert until it can be asked again.
            self._timers.cancel((key, name))
            return None
        if known is None:
            return None if answer is None else self._activate(rule, subject, answer, now)
        before = known.alert
        known.alert = state_machine.clamp_times(before, now)
        if answer is None:
            return self._deactivate(known, rule, now)
        if known.alert.state == "pending":
            known.alert = state_machine.move_to_subject(known.alert, rule, subject)
            known.annotations = answer.annotations
            self._fire_or_schedule(known, rule, now)
        elif known.alert.ceased:
            known.alert = state_machine.reactivate(known.alert)
            self._timers.cancel((key, name))
        return known.alert if known.alert is not before else None

    def _activate(self, rule: Rule, subject: Subject, held: RuleHolds, now: int) -> Alert:
        self._activations += 1
        alert = state_machine.activate(
            rule, subject, now, f"{self._instance_id}-{self._activations}"
        )
        known = ActiveAlert(alert, held.annotations)
        self._active.put(known)
        self._fire_or_schedule(known, rule, now)
        return known.alert

    def _fire_or_schedule(self, known: ActiveAlert, rule: Rule, now: int) -> None:
        due = state_machine.next_transition(known.alert, rule)
        if due is not None and due <= now:
            self._fire(known, now)
        else:
            self._schedule(known, rule)

    def _deactivate(self, known: ActiveAlert, rule: Rule, now: int) -> Alert | None:
        key, before = subject_key(known.alert.subject), known.alert
        if before.state == "pending":
            return self._resolve(key, rule.name, now)
        if not before.ceased:
            known.alert = state_machine.start_keep_firing(before, now)
        due = state_machine.next_transition(known.alert, rule)
        if due is None or due <= now:
            return self._resolve(key, rule.name, now)
        self._schedule(known, rule)
        return known.alert if known.alert is not before else None

    def _fire(self, known: ActiveAlert, now: int) -> Alert:
        alert = known.alert
        known.alert, known.annotations = state_machine.fire(alert, known.annotations, now), {}
        self._timers.cancel((subject_key(alert.subject), alert.rule))
        return known.alert

    def _resolve(self, key: str, rule: str, now: int) -> Alert:
        known = self._active.pop(key, rule)
        self._timers.cancel((key, rule))
        return state_machine.resolve(known.alert, now)

    def _schedule(self, known: ActiveAlert, rule: Rule) -> None:
        due = state_machine.next_transition(known.alert, rule)
        if due is not None:
            self._timers.set((subject_key(known.alert.subject), rule.name), due)

    def _check_clock(self, now: int) -> None:
        """If the clock went back, nothing waits for longer than its rule says."""
        if now < self._last_now:
            for known in self._active:
                known.alert = state_machine.clamp_times(known.alert, now)
            self._reschedule_all()
        self._last_now = now

    def _reschedule_all(self) -> None:
        for key, rule in self._timers.pending_keys():
            self._schedule(self._active.for_subject(key)[rule], self._rules[rule].rule)

    def _has_rule(self, rule: str, scope: Scope) -> bool:
        return rule in self._rules and self._rules[rule].rule.scope == scope

    def _can_evaluate(self, rule: str, scope: Scope) -> bool:
        is_right = self._has_rule(rule, scope) and not self._rules[rule].problem
        return is_right and rule not in self._disabled
