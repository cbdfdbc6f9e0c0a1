"""The life cycle of alerts: pending, firing, resolved."""

import msgspec

from podstatus.alerts.model import Alert, Rule
from podstatus.alerts.rules.load import LoadedRule
from tests.support.alert_rules import (
    SECOND,
    EvaluatingEngine,
    brief,
    checked,
    engine,
    node,
    node_like,
    pod,
    pod_like,
)

AT = 1_000_000 * SECOND
PENDING = Rule(name="Pending", expression='pod.phase == "Pending"', for_seconds=60)
CRASHES = Rule(
    name="Crashes",
    expression="pod.restarts > 3",
    severity="critical",
    labels={"team": "web"},
    annotations={"summary": "{{ pod.name }} restarted {{ pod.restarts }} times"},
)
KEPT = Rule(name="Kept", expression="!pod.ready", keep_firing_for_seconds=30)
NAMED = Rule(name="Named", expression='"n" in pod.labels && int(pod.labels.n) > 3', for_seconds=60)


def test_what_holds_fires_at_once_without_a_for() -> None:
    [alert] = engine(CRASHES).update(pod(), pod_like(name="web", restarts=4), AT)
    assert alert.state == "firing"
    assert (alert.since, alert.fired, alert.ceased, alert.resolved) == (AT, AT, 0, 0)
    assert alert.annotations == {"summary": "web restarted 4 times"}
    assert alert.labels == {
        "alertname": "Crashes", "severity": "critical", "team": "web",
        "node": "n1", "namespace": "default", "pod": "web",
    }  # fmt: skip


def test_what_does_not_hold_makes_nothing() -> None:
    asked = engine(CRASHES, PENDING)
    assert asked.update(pod(), pod_like(restarts=3), AT) == []
    assert asked.next_due() is None
    assert not asked.alerts()


def test_an_alert_waits_for_its_for_and_fires_by_itself() -> None:
    asked = engine(PENDING)
    [waiting] = asked.update(pod(), pod_like(phase="Pending"), AT)
    assert waiting.state == "pending"
    assert asked.next_due() == AT + 60 * SECOND
    assert asked.advance(AT + 59 * SECOND) == []
    [fired] = asked.advance(AT + 60 * SECOND)
    assert (fired.state, fired.since, fired.fired) == ("firing", AT, AT + 60 * SECOND)
    assert fired.id == waiting.id
    assert asked.next_due() is None


def test_an_alert_evaluated_late_fires_then_and_stays() -> None:
    asked = engine(PENDING)
    asked.update(pod(), pod_like(phase="Pending"), AT)
    late = AT + 90 * SECOND
    [fired] = asked.update(pod(), pod_like(phase="Pending"), late)
    assert (fired.state, fired.fired) == ("firing", late)
    assert asked.next_due() is None
    assert asked.advance(late) == []


def test_a_firing_alert_shows_present_values_and_reports_no_change() -> None:
    asked = engine(msgspec.structs.replace(CRASHES, keep_firing_for_seconds=30))
    [fired] = asked.update(pod(), pod_like(name="web", restarts=4), AT)
    assert asked.update(pod(), pod_like(name="web", restarts=5), AT + SECOND) == []
    (shown,) = asked.alerts().values()
    assert shown.annotations == {"summary": "web restarted 5 times"}
    assert msgspec.structs.replace(shown, annotations=fired.annotations) == fired
    [ceased] = asked.update(pod(), pod_like(name="web", restarts=0), AT + 2 * SECOND)
    assert ceased.annotations == shown.annotations
    [again] = asked.update(pod(), pod_like(name="web", restarts=6), AT + 3 * SECOND)
    assert (again.ceased, again.annotations) == (0, {"summary": "web restarted 6 times"})
    [resolved] = asked.subject_removed(pod(), AT + 4 * SECOND)
    assert resolved.annotations == again.annotations


def test_annotations_are_the_latest_before_it_fired() -> None:
    says = {"summary": "{{ pod.reason }}"}
    rule = Rule(name="A", expression="!pod.ready", for_seconds=60, annotations=says)
    asked = engine(rule)
    asked.update(pod(), pod_like(reason="first"), AT)
    assert asked.update(pod(), pod_like(reason="then"), AT + SECOND) == []
    [fired] = asked.advance(AT + 60 * SECOND)
    assert fired.annotations == {"summary": "then"}
    assert asked.update(pod(), pod_like(reason="later"), AT + 61 * SECOND) == []


def test_an_alert_that_ends_while_pending_never_fired() -> None:
    asked = engine(PENDING)
    asked.update(pod(), pod_like(phase="Pending"), AT)
    [over] = asked.update(pod(), pod_like(phase="Running"), AT + SECOND)
    assert (over.state, over.fired, over.resolved) == ("resolved", 0, AT + SECOND)
    assert asked.next_due() is None
    assert not asked.alerts()


def test_an_alert_resolves_when_its_rule_ceases_to_hold() -> None:
    asked = engine(CRASHES)
    [fired] = asked.update(pod(), pod_like(restarts=4), AT)
    [over] = asked.update(pod(), pod_like(restarts=0), AT + 5 * SECOND)
    assert over.id == fired.id
    assert (over.state, over.ceased, over.resolved) == (
        "resolved",
        AT + 5 * SECOND,
        AT + 5 * SECOND,
    )


def test_it_fires_again_under_another_id_also_in_the_same_moment() -> None:
    asked = engine(CRASHES)
    ids = set()
    for _ in range(3):
        [fired] = asked.update(pod(), pod_like(restarts=4), AT)
        asked.update(pod(), pod_like(restarts=0), AT)
        ids.add(fired.id)
    assert len(ids) == 3


def test_it_is_kept_firing_and_goes_on_if_it_holds_again_in_time() -> None:
    asked = engine(KEPT)
    [fired] = asked.update(pod(), pod_like(ready=False), AT)
    [ceased] = asked.update(pod(), pod_like(ready=True), AT + SECOND)
    assert (ceased.state, ceased.ceased) == ("firing", AT + SECOND)
    assert asked.next_due() == AT + 31 * SECOND
    [again] = asked.update(pod(), pod_like(ready=False), AT + 10 * SECOND)
    assert again == fired
    assert asked.next_due() is None


def test_it_is_kept_firing_no_longer_than_its_rule_says() -> None:
    asked = engine(KEPT)
    asked.update(pod(), pod_like(ready=False), AT)
    asked.update(pod(), pod_like(ready=True), AT + SECOND)
    assert asked.update(pod(), pod_like(ready=True, phase="x"), AT + 2 * SECOND) == []
    [over] = asked.advance(AT + 31 * SECOND)
    assert (over.ceased, over.resolved) == (AT + SECOND, AT + 31 * SECOND)


def test_a_pod_that_goes_takes_its_alerts_along() -> None:
    asked = engine(CRASHES, PENDING, KEPT)
    asked.update(pod(), pod_like(restarts=4, phase="Pending"), AT)
    over = asked.subject_removed(pod(), AT + SECOND)
    assert sorted(brief(over)) == [
        ("Crashes", "web", "resolved"), ("Kept", "web", "resolved"), ("Pending", "web", "resolved"),
    ]  # fmt: skip
    assert asked.subject_removed(pod(), AT + SECOND) == []
    assert asked.next_due() is None


def test_another_pod_of_the_same_name_is_another_subject() -> None:
    asked = engine(CRASHES)
    asked.update(pod(uid="1"), pod_like(restarts=4), AT)
    [second] = asked.update(pod(uid="2"), pod_like(restarts=4), AT)
    assert second.subject.uid == "2"
    assert len(asked.alerts()) == 2


def test_a_pod_that_a_node_takes_meanwhile_is_the_same_subject() -> None:
    asked = engine(PENDING)
    asked.update(pod(node=""), pod_like(phase="Pending"), AT)
    [moved] = asked.update(pod(node="n2"), pod_like(phase="Pending"), AT + SECOND)
    assert (moved.labels["node"], moved.since) == ("n2", AT)


def test_a_rule_that_fails_of_one_pod_says_so_and_the_others_run_on() -> None:
    asked = engine(NAMED, CRASHES)
    assert brief(asked.update(pod("a"), pod_like(labels={"n": "4"}), AT)) == [
        ("Named", "a", "pending")
    ]
    changed = asked.update(pod("b"), pod_like(labels={"n": "no number"}, restarts=4), AT)
    assert brief(changed) == [("Crashes", "b", "firing")]
    named, crashes = asked.rules()
    assert (named.failing, named.pending) == (1, 1)
    assert named.problem.startswith("pod default/b: ")
    assert (crashes.failing, crashes.problem, crashes.firing) == (0, "", 1)


def test_an_alert_of_a_subject_that_its_rule_fails_of_stays_as_it_is() -> None:
    asked = engine(NAMED)
    asked.update(pod(), pod_like(labels={"n": "4"}), AT)
    assert asked.update(pod(), pod_like(labels={"n": "?"}), AT + SECOND) == []
    assert asked.advance(AT + 100 * SECOND) == []
    assert [alert.state for alert in asked.alerts().values()] == ["pending"]
    [fired] = asked.update(pod(), pod_like(labels={"n": "5"}), AT + 101 * SECOND)
    assert (fired.state, fired.since, fired.fired) == ("firing", AT, AT + 101 * SECOND)
    [rule] = asked.rules()
    assert (rule.failing, rule.problem) == (0, "")


def test_a_pod_that_goes_is_failed_of_no_more() -> None:
    asked = engine(NAMED)
    asked.update(pod(), pod_like(labels={"n": "?"}), AT)
    asked.subject_removed(pod(), AT)
    assert [(rule.failing, rule.problem) for rule in asked.rules()] == [(0, "")]


def test_a_rule_that_cannot_be_asked_is_shown_and_harms_no_other() -> None:
    broken = LoadedRule(rule=Rule(name="Broken", expression="?"), problem="line 3: no")
    good = engine(CRASHES)
    both = EvaluatingEngine([broken, checked(CRASHES)])
    facts = pod_like(restarts=4)
    assert brief(both.update(pod(), facts, AT)) == brief(good.update(pod(), facts, AT))
    assert [(rule.name, rule.problem) for rule in both.rules()] == [
        ("Broken", "line 3: no"),
        ("Crashes", ""),
    ]


def test_a_rule_that_is_switched_off_leaves_its_alerts_as_they_are() -> None:
    asked = engine(PENDING, CRASHES)
    asked.update(pod(), pod_like(phase="Pending", restarts=4), AT)
    asked.disable_rule("Pending", "it takes too long")
    asked.disable_rule("Crashes", "it takes too long")
    asked.disable_rule("Unknown", "it is none of ours")
    assert asked.next_due() is None
    assert asked.advance(AT + 3600 * SECOND) == []
    assert asked.update(pod(), pod_like(phase="Running", restarts=0), AT + 3600 * SECOND) == []
    assert asked.update(pod("new"), pod_like(restarts=4), AT + 3600 * SECOND) == []
    assert {it.state for it in asked.alerts().values()} == {"pending", "firing"}
    assert asked.disabled_rules == ("Pending", "Crashes")
    assert [(it.problem, it.switched_off) for it in asked.rules()] == [
        ("switched off: it takes too long", True)
    ] * 2
    assert len(asked.subject_removed(pod(), AT + 3601 * SECOND)) == 2


def test_a_for_goes_on_over_a_restart() -> None:
    before = engine(PENDING)
    before.update(pod(), pod_like(phase="Pending"), AT)
    after = restarted(before, PENDING)
    assert after.next_due() is None  # it is not known yet whether it still holds
    assert after.update(pod(), pod_like(phase="Pending"), AT + 40 * SECOND) == []
    assert after.next_due() == AT + 60 * SECOND
    [fired] = after.advance(AT + 60 * SECOND)
    assert (fired.since, fired.fired) == (AT, AT + 60 * SECOND)


def test_one_that_fired_before_a_restart_does_not_fire_again() -> None:
    before = engine(CRASHES)
    [fired] = before.update(pod(), pod_like(restarts=4), AT)
    after = restarted(before, CRASHES)
    assert after.update(pod(), pod_like(restarts=5), AT + SECOND) == []
    assert after.all_known("pod", AT + SECOND) == []
    shown = msgspec.structs.replace(fired, annotations={"summary": " restarted 5 times"})
    assert after.alerts() == {fired.id: shown}


def test_a_restored_alert_is_resumed_once_when_its_subject_is_evaluated() -> None:
    before = engine(CRASHES)
    [fired] = before.update(pod("a"), pod_like(restarts=4), AT)
    before.update(pod("b"), pod_like(restarts=4), AT)
    after = restarted(before, CRASHES)
    assert after.resumed() == []
    after.update(pod("a"), pod_like(restarts=4), AT)
    after.update(pod("b"), pod_like(restarts=0), AT)
    assert after.resumed() == [fired]
    after.update(pod("a"), pod_like(restarts=5), AT)
    assert after.resumed() == []


def test_facts_that_are_too_young_do_not_end_what_began_before_a_restart() -> None:
    flaps = Rule(name="Flaps", expression="pod.readyChanges10m > 3 && !pod.terminating")
    slow = Rule(name="Slow", expression="pod.restarts10m > 3", for_seconds=60)
    young = frozenset(("pod.readyChanges10m", "pod.restarts10m"))
    before = engine(flaps, slow, CRASHES)
    before.update(pod(), pod_like(readyChanges10m=4, restarts10m=4, restarts=4), AT)
    after = restarted(before, flaps, slow, CRASHES)
    changed = after.update(pod(), pod_like(restarts10m=4), AT, young=young)
    assert brief(changed) == [("Crashes", "web", "resolved")]
    assert after.update(pod(), pod_like(), AT, young=young) == []
    assert after.advance(AT + 61 * SECOND) == []  # it is unknown whether it holds
    assert sorted(brief(after.update(pod(), pod_like(), AT + 61 * SECOND))) == [
        ("Flaps", "web", "resolved"),
        ("Slow", "web", "resolved"),
    ]


def test_young_facts_end_what_began_in_this_life() -> None:
    lag = Rule(name="Lag", scope="node", expression="sync.unsent > 3")
    asked = engine(lag)
    young = frozenset(("sync.unsent",))
    asked.update(node(), node_like(sync_unsent=4), AT, young=young)
    changed = asked.update(node(), node_like(sync_unsent=0), AT, young=young)
    assert brief(changed) == [("Lag", "n1", "resolved")]


def test_what_was_over_before_a_restart_stays_so() -> None:
    before, after = engine(CRASHES), engine(CRASHES)
    before.update(pod(), pod_like(restarts=4), AT)
    after.restore(before.subject_removed(pod(), AT))
    assert not after.alerts()


def test_alerts_of_missing_subjects_resolve_once_all_are_evaluated() -> None:
    before = engine(CRASHES, PENDING)
    before.update(pod("a"), pod_like(restarts=4), AT)
    before.update(pod("b"), pod_like(restarts=4), AT)
    after = restarted(before, CRASHES, PENDING)
    after.update(pod("a"), pod_like(restarts=4), AT + SECOND)
    assert after.all_known("node", AT + SECOND) == []
    assert brief(after.all_known("pod", AT + SECOND)) == [("Crashes", "b", "resolved")]


def test_alerts_of_rules_that_are_gone_or_of_another_scope_are_over() -> None:
    before = engine(CRASHES, KEPT)
    before.update(pod(), pod_like(restarts=4), AT)
    of_nodes = Rule(name="Kept", scope="node", expression="!node.ready")
    after = restarted(before, of_nodes)
    after.update(pod(), pod_like(restarts=4), AT)
    assert len(brief(after.all_known("pod", AT))) == 2
    assert not after.alerts()


def test_a_broken_rule_keeps_its_alerts_until_their_subject_goes() -> None:
    before = engine(CRASHES)
    before.update(pod(), pod_like(restarts=4), AT)
    after = EvaluatingEngine([LoadedRule(rule=CRASHES, problem="line 3: no")])
    after.restore(before.alerts().values())
    assert after.update(pod(), pod_like(restarts=0), AT) == []
    assert after.all_known("pod", AT) == []
    assert brief(after.subject_removed(pod(), AT)) == [("Crashes", "web", "resolved")]


def test_nodes_are_asked_with_sync_facts() -> None:
    rule = Rule(name="Lag", scope="node", expression="!node.ready && sync.oldestUnsentSeconds > 60")
    asked = engine(rule, CRASHES)
    [alert] = asked.update(node(), node_like(sync_oldestUnsentSeconds=61), AT)
    assert alert.labels == {"alertname": "Lag", "severity": "warning", "node": "n1"}


def restarted(before: EvaluatingEngine, *rules: Rule) -> EvaluatingEngine:
    after = engine(*rules)
    after.restore(list[Alert](before.alerts().values()))
    return after
