"""The alert engine: which alerts are active, and for which subjects rules fail.

The engine is given results and the monotonic time in nanoseconds, and returns the alerts that
changed, with monotonic times. It retains active alerts: pending or firing. No rule is evaluated
twice about the same facts: what depends on time alone, such as a `for` that expires, waits in a
heap. Where rules are evaluated: alerts.evaluator.

A rule that fails for a subject leaves the alert of that subject unchanged, and so does a rule that
cannot be evaluated at all. An alert restored after a restart waits until its subject is evaluated,
and does not resolve while its rule uses facts that are still warming up.

Called from one thread.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from podstatus.alerts.engine import state_machine
from podstatus.alerts.engine.active_alerts import ActiveAlert, ActiveAlerts, subject_key
from podstatus.alerts.evaluator.ports import RuleFailed, RuleHolds, RuleResult, RuleResults
from podstatus.alerts.model import Alert, AlertId, Rule, RuleState, Scope, Subject
from podstatus.alerts.rules.load import LoadedRule
from podstatus.base.timer_heap import TimerHeap


class RuleFailures:
    """The subjects for which each rule fails, latest last."""

    def __init__(self) -> None:
        self._rules: dict[str, dict[str, str]] = {}
        self._subjects: dict[str, frozenset[str]] = {}
        """The failing rules of each subject."""
        self._counts: Counter[str] = Counter()

    def record(self, key: str, subject: Subject, results: RuleResults) -> None:
        """Record the results for a subject. A rule without a result has not failed."""
        failed = {rule: it.problem for rule, it in results.items() if isinstance(it, RuleFailed)}
        if not failed and key not in self._subjects:
            return
        self.forget(key)
        about = f"{subject.scope} {subject.full_name}"
        for rule, problem in failed.items():
            self._rules.setdefault(rule, {})[key] = f"{about}: {problem}"
            self._counts[rule] += 1
        if failed:
            self._subjects[key] = frozenset(failed)

    def forget(self, key: str) -> None:
        """Remove a subject that is gone, or for which no rule fails."""
        for rule in self._subjects.pop(key, ()):
            del self._rules[rule][key]

    def count(self, rule: str) -> int:
        """Return how often a rule has failed."""
        return self._counts[rule]

    def latest(self, rule: str) -> tuple[int, str]:
        """Return for how many subjects a rule fails, and its latest error."""
        failing = self._rules.get(rule) or {}
        return len(failing), next(reversed(failing.values()), "")


_WARMING_UP = RuleFailed("its facts are warming up")


class Engine:
    """All rules, and their active alerts."""

    def __init__(self, rules: Sequence[LoadedRule], *, instance_id: str = "") -> None:
        """`instance_id` distinguishes the alert IDs of this process from those of earlier ones."""
        self._instance_id = instance_id
        self._rules = {loaded.rule.name: loaded for loaded in rules}
        self._disabled: dict[str, str] = {}
        """Rules that exceeded their budget, and why they were disabled."""
        self._active = ActiveAlerts()
        self._failures = RuleFailures()
        self._timers: TimerHeap[tuple[str, str]] = TimerHeap()
        self._activations = 0

    @property
    def disabled_rules(self) -> Sequence[str]:
        """Rules that exceeded their budget, in the order in which they were disabled."""
        return tuple(self._disabled)

    def disable_rule(self, rule: str, problem: str) -> None:
        """Stop evaluating a rule that exceeded its budget; its alerts stay as they are."""
        if rule in self._rules:
            self._disabled[rule] = problem
            for key, name in self._timers.pending_keys():
                if name == rule:
                    self._timers.cancel((key, name))

    def apply(
        self,
        subject: Subject,
        results: RuleResults,
        now: int,
        *,
        warming_up: frozenset[str] = frozenset(),
    ) -> list[Alert]:
        """Apply the results of all rules for a subject; return the alerts that changed.

        `warming_up`: facts that cannot show yet that a problem is over.
        """
        key = subject_key(subject)
        results = dict(results)
        self._failures.record(key, subject, results)
        alerts = self._active.for_subject(key)
        if not results and not alerts:
            return []
        self._active.mark_subject_seen(key)
        for name, active in alerts.items():
            if name not in results and self._may_still_hold(active, warming_up):
                results[name] = _WARMING_UP
        concerned = [
            name for name in {**alerts, **results} if self._can_evaluate(name, subject.scope)
        ]
        steps = [self._update_alert(name, subject, results.get(name), now) for name in concerned]
        return [alert for alert in steps if alert is not None]

    def subject_removed(self, subject: Subject, now: int) -> list[Alert]:
        """Resolve the alerts of a subject that is gone; return them."""
        key = subject_key(subject)
        self._failures.forget(key)
        return [self._resolve(key, rule, now) for rule in list(self._active.for_subject(key))]

    def all_known(self, scope: Scope, now: int) -> list[Alert]:
        """Resolve the alerts of this scope whose subject or rule is gone; return them.

        To be called when every existing subject has been evaluated."""
        over = [
            active.alert
            for active in self._active
            if active.alert.subject.scope == scope
            and not (active.is_subject_seen and self._has_rule(active.alert.rule, scope))
        ]
        return [self._resolve(subject_key(alert.subject), alert.rule, now) for alert in over]

    def next_due(self) -> int | None:
        """Return when `advance` is to be called next; None: not before the next results."""
        return self._timers.next_due()

    def advance(self, now: int) -> list[Alert]:
        """Fire or resolve the alerts whose time has come; return them."""
        changed = []
        for key, rule in self._timers.pop_due(now):
            active = self._active.for_subject(key)[rule]
            pending = active.alert.state == "pending"
            changed.append(self._fire(active, now) if pending else self._resolve(key, rule, now))
        return changed

    def restore(self, alerts: Iterable[Alert]) -> None:
        """Add the alerts of the previous process. They wait until their subjects are evaluated."""
        for alert in alerts:
            if not alert.resolved:
                self._active.put(ActiveAlert(alert, is_subject_seen=False, is_restored=True))

    def has_restored(self, subject: Subject) -> bool:
        """True if the subject has alerts of the previous process."""
        return any(
            active.is_restored for active in self._active.for_subject(subject_key(subject)).values()
        )

    def resumed(self) -> list[Alert]:
        """Return restored firing alerts whose subjects were evaluated since the last call."""
        return [alert for alert in self._active.pop_resumed() if alert.state == "firing"]

    def alerts(self) -> Mapping[AlertId, Alert]:
        """Return all pending and firing alerts."""
        return {active.alert.id: active.alert for active in self._active}

    def waiting(self) -> list[Alert]:
        """Return the alerts whose `for` or `keepFiringFor` runs."""
        return [it.alert for it in self._active if it.alert.state == "pending" or it.alert.ceased]

    def rules(self) -> Sequence[RuleState]:
        """Return the status of each rule, in the order of their files."""
        counts = Counter((alert.rule, alert.state) for alert in self.alerts().values())
        states = []
        for name, loaded in self._rules.items():
            failing, problem = self._failures.latest(name)
            disabled = f"switched off: {self._disabled[name]}" if name in self._disabled else ""
            states.append(
                RuleState(
                    name=name,
                    scope=loaded.rule.scope,
                    pending=counts[name, "pending"],
                    firing=counts[name, "firing"],
                    problem=loaded.problem or disabled or problem,
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
        self, name: str, subject: Subject, result: RuleResult | None, now: int
    ) -> Alert | None:
        """Apply the result of one rule for a subject; return its alert if that changed."""
        key, rule = subject_key(subject), self._rules[name].rule
        active = self._active.for_subject(key).get(name)
        if isinstance(result, RuleFailed):
            # Its alert stays as it is until the rule can be evaluated again.
            self._timers.cancel((key, name))
            return None
        if active is None:
            return None if result is None else self._activate(rule, subject, result, now)
        before = active.alert
        if result is None:
            return self._deactivate(active, rule, now)
        if active.alert.state == "pending":
            active.alert = state_machine.move_to_subject(active.alert, rule, subject)
            active.annotations = result.annotations
            self._fire_or_schedule(active, rule, now)
            return active.alert if active.alert is not before else None
        if active.alert.ceased:
            active.alert = state_machine.reactivate(active.alert)
            self._timers.cancel((key, name))
        # Shown, but not reported: a text with new values is no news for a receiver.
        active.alert = state_machine.set_annotations(active.alert, result.annotations)
        return active.alert if before.ceased else None

    def _activate(self, rule: Rule, subject: Subject, held: RuleHolds, now: int) -> Alert:
        self._activations += 1
        alert = state_machine.activate(
            rule, subject, now, f"{self._instance_id}-{self._activations}"
        )
        active = ActiveAlert(alert, held.annotations)
        self._active.put(active)
        self._fire_or_schedule(active, rule, now)
        return active.alert

    def _fire_or_schedule(self, active: ActiveAlert, rule: Rule, now: int) -> None:
        due = state_machine.next_transition(active.alert, rule)
        if due is not None and due <= now:
            self._fire(active, now)
        else:
            self._schedule(active, rule)

    def _deactivate(self, active: ActiveAlert, rule: Rule, now: int) -> Alert | None:
        key, before = subject_key(active.alert.subject), active.alert
        if before.state == "pending":
            return self._resolve(key, rule.name, now)
        if not before.ceased:
            active.alert = state_machine.start_keep_firing(before, now)
        due = state_machine.next_transition(active.alert, rule)
        if due is None or due <= now:
            return self._resolve(key, rule.name, now)
        self._schedule(active, rule)
        return active.alert if active.alert is not before else None

    def _fire(self, active: ActiveAlert, now: int) -> Alert:
        alert = active.alert
        active.alert, active.annotations = state_machine.fire(alert, active.annotations, now), {}
        self._timers.cancel((subject_key(alert.subject), alert.rule))
        return active.alert

    def _resolve(self, key: str, rule: str, now: int) -> Alert:
        active = self._active.pop(key, rule)
        self._timers.cancel((key, rule))
        return state_machine.resolve(active.alert, now)

    def _schedule(self, active: ActiveAlert, rule: Rule) -> None:
        due = state_machine.next_transition(active.alert, rule)
        if due is not None:
            self._timers.set((subject_key(active.alert.subject), rule.name), due)

    def _has_rule(self, rule: str, scope: Scope) -> bool:
        return rule in self._rules and self._rules[rule].rule.scope == scope

    def _can_evaluate(self, rule: str, scope: Scope) -> bool:
        is_valid = self._has_rule(rule, scope) and not self._rules[rule].problem
        return is_valid and rule not in self._disabled
