"""The taints of firing alerts, if their file allows it and is not a dry run."""

from podstatus.alerts.actions.desired_taints import KIND, desired_taints, format_taint
from podstatus.alerts.model import Action, Alert, AlertId, RuleSet, Subject

ALLOWED = RuleSet(allow_actions=frozenset({KIND}), dry_run=False)
RULES = {
    "Old": ALLOWED,
    "New": ALLOWED,
    "DryRun": RuleSet(allow_actions=frozenset({KIND})),
    "NotListed": RuleSet(dry_run=False),
}


def firing(rule: str, fired: int = 1, kind: str = KIND, **options: str) -> tuple[Alert, Action]:
    subject = Subject(scope="node", name="n", node="n")
    alert = Alert(
        id=AlertId(f"{rule}-{fired}"),
        rule=rule,
        subject=subject,
        state="firing",
        since=fired,
        fired=fired,
    )
    return alert, Action(kind=kind, options=options)


def wanted(*alerts: tuple[Alert, Action]) -> list[str]:
    found = desired_taints(alerts, lambda rule: RULES.get(rule, RuleSet()))
    return [format_taint(taint).removeprefix("alerts.podstatus.dev/") for taint in found]


def test_what_fires_and_is_allowed_is_wanted() -> None:
    assert wanted(firing("Old", key="a", value="v"), firing("New", effect="NoExecute")) == [
        "New:NoExecute",
        "a=v:NoSchedule",
    ]


def test_nothing_is_wanted_in_a_dry_run_nor_if_it_is_not_listed_nor_of_a_rule_gone() -> None:
    assert wanted(firing("DryRun"), firing("NotListed"), firing("Gone")) == []


def test_of_several_alerts_the_oldest_gives_the_value() -> None:
    new, old = firing("New", 2, key="a", value="new"), firing("Old", 1, key="a", value="old")
    assert wanted(new, old) == ["a=old:NoSchedule"]


def test_other_actions_and_names_that_cannot_be_want_nothing() -> None:
    keys = ("node.kubernetes.io/unreachable", "a/b/c", "-x", "x" * 64)
    assert wanted(*(firing("Old", key=key) for key in keys)) == []
    assert wanted(firing("Old", key="a", effect="Never"), firing("Old", kind="event")) == []
