"""`podstatus get alerts`: tables, formats, and problems of rules."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml
from typer.testing import CliRunner, Result

from podstatus.cli.get_alerts import alert_table
from podstatus.cli.register_commands import app
from podstatus.kube.scalars.time import Time
from podstatus.web.v1.alerts import alert_view
from tests.cli.fake_node import FakeNode, fake_node
from tests.support.processes.on_terminal import on_terminal
from tests.support.web.fake_alerts import an_alert
from tests.support.web.fake_status_view import AT

ALERTS = (an_alert("web"), an_alert("db", "NotReady", "pending"), an_alert("n", scope="node"))
ALERT_VIEWS = [msgspec.to_builtins(alert_view(alert)) for alert in ALERTS]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    with fake_node(tmp_path / "root") as node:
        node.responses["/v1/alerts"] = {
            "alerts": ALERT_VIEWS,
            "remaining": 0,
            "rules": [],
            "deliveries": [],
        }
        yield node


def get(tmp_path: Path, *words: str) -> Result:
    given = ["get", "alerts", *words, "--root-dir", str(tmp_path / "root")]
    return CliRunner().invoke(app, given)


def rows(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()]


def test_an_observer_is_asked_like_an_agent(tmp_path: Path) -> None:
    with fake_node(tmp_path / "root", node="", observes=True) as found:
        found.responses["/v1/alerts"] = {"alerts": ALERT_VIEWS}
        assert len(rows(get(tmp_path))) == 1 + len(ALERTS)


@pytest.mark.usefixtures("node")
def test_a_row_for_each(tmp_path: Path) -> None:
    heading, *others = rows(get(tmp_path))
    assert heading == ["ALERT", "SEVERITY", "STATE", "SUBJECT", "SINCE", "SUMMARY"]
    assert [[*row[:4], *row[5:]] for row in others] == [
        ["CrashLoop", "warning", "firing", "pod/default/web", "web", "is", "bad"],
        ["NotReady", "warning", "pending", "pod/default/db"],
        ["CrashLoop", "warning", "firing", "node/n", "n", "is", "bad"],
    ]


def test_since_is_an_age() -> None:
    shown = [alert_view(alert) for alert in ALERTS]
    table = alert_table(shown, Time.from_unix_nanos(AT + 250 * 10**9), wide=True)
    assert table.headings[4:7] == ("SINCE", "NODE", "RESOLVED")
    assert table.rows[0][4:7] == ("4m10s", "node-1", "")


@pytest.mark.usefixtures("node")
def test_programs_get_all_of_it(tmp_path: Path) -> None:
    as_json = json.loads(get(tmp_path, "-o", "json").stdout)
    assert as_json["alerts"][0]["annotations"] == {"summary": "web is bad"}
    assert yaml.safe_load(get(tmp_path, "-o", "yaml").stdout) == as_json
    assert get(tmp_path, "-o", "name").stdout.splitlines()[0] == "alert/CrashLoop pod/default/web"


def test_one_rule_and_one_namespace_can_be_asked_for(tmp_path: Path, node: FakeNode) -> None:
    get(tmp_path, "CrashLoop", "-n", "default", "--from", "agent")
    assert node.asked[-1] == "/v1/alerts?rule=CrashLoop&namespace=default&limit=5000"
    get(tmp_path, "-A", "-n", "default")
    assert node.asked[-1] == "/v1/alerts?limit=5000"


def test_what_is_wrong_with_rules_and_receivers_is_said(tmp_path: Path, node: FakeNode) -> None:
    node.responses["/v1/alerts"] = {
        "alerts": [],
        "remaining": 3,
        "rules": [
            {"scope": "pod", "name": "Good"},
            {"scope": "pod", "name": "Bad", "problem": "no such key"},
        ],
        "deliveries": [{"name": "webhook https://a", "problem": "connection refused"}],
    }
    result = get(tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines() == [
        "No alerts",
        "podstatus: 3 more alerts are not shown; pass a rule or a namespace",
        "podstatus: rule Bad: no such key",
        "podstatus: webhook https://a: connection refused",
    ]


def test_a_failing_receiver_is_listed_with_its_rules(tmp_path: Path, node: FakeNode) -> None:
    names = ["A", "B", "C", "D", "E"]
    node.responses["/v1/alerts"] = {
        "alerts": [],
        "rules": [{"scope": "pod", "name": name, "problem": f"{name} fails"} for name in names],
        "deliveries": [
            {"name": "webhook https://a", "problem": "away", "rules": ["B"]},
            {"name": "alertmanager", "problem": "gone", "rules": names},
            {"name": "mail", "rules": ["B"]},
            {"name": "alerts.db", "problem": "full"},
        ],
    }
    assert get(tmp_path).stderr.splitlines()[-3:] == [
        "podstatus: webhook https://a (rule B): away",
        "podstatus: alertmanager (rules A, B, C and 2 more): gone",
        "podstatus: alerts.db: full",
    ]
    # With a rule, only its own problems are printed.
    assert get(tmp_path, "E").stderr.splitlines() == [
        "No alerts",
        "podstatus: rule E: E fails",
        "podstatus: alertmanager (rules A, B, C and 2 more): gone",
        "podstatus: alerts.db: full",
    ]


def test_a_rule_that_is_not_there_is_named(tmp_path: Path, node: FakeNode) -> None:
    rules = [{"scope": "pod", "name": "Good"}, {"scope": "pod", "name": "Fine"}]
    node.responses["/v1/alerts"] = {"alerts": [], "rules": rules, "deliveries": []}
    result = get(tmp_path, "Nope")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "podstatus: no such rule: Nope; rules: Fine, Good\n"
    result = get(tmp_path, "Good")
    assert (result.exit_code, result.stderr) == (0, "No alerts\n")


def test_a_rule_that_is_gone_may_have_left_alerts(tmp_path: Path, node: FakeNode) -> None:
    rules = [{"scope": "pod", "name": "Good"}]
    node.responses["/v1/alerts"] = {"alerts": ALERT_VIEWS[:1], "rules": rules, "deliveries": []}
    assert len(rows(get(tmp_path, "CrashLoop"))) == 2


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("words", [("--from", "server"), ("--kubeconfig", "x"), ("--watch",)])
def test_only_the_agent_has_alerts(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = get(tmp_path, *words)
    assert result.exit_code == 1
    assert "alerts" in result.stderr


def test_an_agent_without_rules_says_so(tmp_path: Path, node: FakeNode) -> None:
    node.responses = {}
    assert get(tmp_path).exit_code == 1


@pytest.mark.usefixtures("node")
def test_a_narrow_terminal_has_all_of_it(tmp_path: Path) -> None:
    narrow = {"COLUMNS": "50", "NO_COLOR": "1"}
    words = ("get", "alerts", "--root-dir", str(tmp_path / "root"))
    lines = on_terminal(*words, environment=narrow)[1].decode().splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[1].split() == ["SINCE", "SUMMARY"]
    assert lines[3].endswith("   web is bad")
