"""Alert rules of several files, and their errors."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from podstatus.agent.compose.alert_rules import AlertRules, AlertRulesError, load_alert_rules
from podstatus.agent.settings.load import SettingsError, load_settings
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.model import Action
from podstatus.client.auth import files as client_files
from tests.support.processes.agent_process import (
    agent,
    get_alerts,
    make_pod,
    run_command,
    until,
)

ONE = "allowActions: [deletePod]\ndryRun: false\nrules:\n- {name: One, expr: '!pod.ready'}\n"
TWO = "rules:\n- {name: Two, expr: pod.ready, actions: [log]}\n"
EVALUATOR = BudgetedEvaluator()
LOG, EVENT = Action(kind="log"), Action(kind="event")


def files(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"{number}.yaml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def load(paths: Iterable[Path]) -> AlertRules:
    return load_alert_rules(paths, EVALUATOR)


@pytest.fixture(scope="module", autouse=True)
def _evaluator() -> Iterator[None]:
    with EVALUATOR:
        yield


def test_each_file_allows_for_its_own_rules_alone(tmp_path: Path) -> None:
    rules = load(files(tmp_path, ONE, TWO))
    assert [it.rule.name for it in rules.rules][-2:] == ["One", "Two"]
    one, two, missing = map(rules.rule_set, ("One", "Two", "Missing"))
    assert (one.allow_actions, one.dry_run) == (frozenset({"deletePod"}), False)
    assert (two.allow_actions, two.dry_run) == (frozenset(), True)
    assert missing.allow_actions == frozenset()


def test_rules_that_say_nothing_have_the_usual_done(tmp_path: Path) -> None:
    actions = load(files(tmp_path, ONE, TWO)).actions([EVENT])
    assert actions["One"] == (EVENT,)
    assert [it.kind for it in actions["Two"]] == ["log"]


def test_default_rules_put_nothing_among_the_events_of_pods(tmp_path: Path) -> None:
    mine = "rules:\n- {name: PodStuckPending, expr: pod.phase == 'Pending'}\n"
    actions = load(files(tmp_path, mine)).actions([LOG, EVENT])
    assert actions["PodCrashLooping"] == (LOG,)
    assert actions["NodePressure"] == (LOG, EVENT)
    assert actions["PodStuckPending"] == (LOG, EVENT)


def test_all_errors_of_all_files_are_reported_with_their_places(tmp_path: Path) -> None:
    paths = files(tmp_path, ONE, ONE, "rules:\n- {name: X, expr: pod.fase == 1}\n", "a: [")
    paths.append(tmp_path / "none.yaml")
    with pytest.raises(AlertRulesError) as raised:
        load(paths)
    lines = str(raised.value).splitlines()
    assert lines[0] == f"{paths[1]}:4:3: duplicate rule One, first defined in {paths[0]}:4"
    assert lines[1].startswith(f"{paths[2]}:2:19: expr: ")
    assert any(line.startswith(f"{paths[3]}:") for line in lines)
    assert lines[-1] == f"--alert-rules: cannot read {paths[4]}: no such file or directory"


def test_notes_of_all_files_are_kept_with_their_places(tmp_path: Path) -> None:
    paths = files(tmp_path, ONE, "rules: []", "rules:\n- {name: X, expr: pod.phase == 'run'}\n")
    first, second = load(paths).warnings
    assert first.startswith(f"{paths[1]}:1:8: note: the file has no rules")
    assert second.startswith(f"{paths[2]}:2:32: note: expr: ")


def test_a_pipe_without_a_writer_does_not_delay_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_files, "_PIPE_SECONDS", 0.05)
    os.mkfifo(tmp_path / "rules.yaml")
    with pytest.raises(AlertRulesError, match="the pipe had no data"):
        load([tmp_path / "rules.yaml"])


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a" * (2**20 + 1)])
def test_what_is_no_file_of_rules_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rules.yaml"
    path.write_bytes(content)
    with pytest.raises(AlertRulesError, match=str(path)):
        load([path])


def test_settings_name_files_and_an_alertmanager(tmp_path: Path) -> None:
    flags = {"alert_rules": f"{tmp_path}/a.yaml, b.yaml", "alertmanager_url": "http://am:9093"}
    settings = load_settings(flags, {}).settings
    assert settings.alerts
    assert settings.alert_rules == (tmp_path / "a.yaml", Path("b.yaml").absolute())
    assert settings.alertmanager_url == "http://am:9093"
    assert load_settings({}, {"PODSTATUS_ALERTS": "false"}).settings.alerts is False
    assert load_settings({}, {}).settings.alert_rules == ()
    with pytest.raises(SettingsError, match="--alertmanager-url"):
        load_settings({"alertmanager_url": "am"}, {})


def test_a_rule_that_is_wrong_is_not_asked_and_the_others_are(tmp_path: Path) -> None:
    wrong = "- {name: X, expr: pod.fase == 1}\n- {name: Y, expr: pod.ready, actions: [nothing]}\n"
    paths = files(tmp_path, ONE, TWO + wrong)
    rules = load(paths)
    found = {it.rule.name: it for it in rules.rules}
    first, second = rules.errors
    assert first.startswith(f"{paths[1]}:3:19: expr: ")
    assert second.startswith(f"{paths[1]}:4:")
    assert found["X"].problem.startswith("line 3: ")
    assert found["Y"].problem.startswith("line 4: ")
    asked = {name for name, it in found.items() if not it.problem}
    assert set(found) - asked == {"X", "Y"}


@pytest.mark.parametrize(
    "text", ["rules:\n- {expr: pod.ready}\n", "allowActions: [nothing]\n", "disable: [Missing]\n"]
)
def test_a_mistake_that_is_no_rules_own_is_refused(tmp_path: Path, text: str) -> None:
    (path,) = files(tmp_path, text)
    with pytest.raises(AlertRulesError, match=str(path)):
        load([path])


def test_an_agent_does_not_start_with_a_file_of_no_use(tmp_path: Path) -> None:
    (path,) = files(tmp_path, "rules:\n- {name: X, expr: pod.ready}\ndisabled: [X]\n")
    with agent(tmp_path / "agent", "--alert-rules", str(path)) as made:
        made.start()
        assert made.wait() == 2
        assert f"{path}:3:1: " in made.log()
        assert not list((made.root_dir / "apiserver").iterdir())


@pytest.mark.slow
def test_an_agent_says_at_its_start_what_rules_will_not_do(tmp_path: Path) -> None:
    strange = "rules:\n- {name: X, expr: pod.phase == 'running'}\n"
    paths = files(tmp_path, "rules: []\n", strange)
    options = ("--alert-rules", ",".join(map(str, paths)), "--no-samples")
    with agent(tmp_path / "agent", *options) as made:
        made.start_ready()
        assert f"{paths[0]}:1:8: note: the file has no rules" in made.log()
        assert f"{paths[1]}:2:32: note: expr: " in made.log()


@pytest.mark.slow
def test_an_agent_with_a_broken_rule_shows_it_and_asks_the_others(tmp_path: Path) -> None:
    text = "rules:\n- {name: X, expr: pod.fase == 1}\n- {name: Y, expr: '\"y\" in pod.labels'}\n"
    (path,) = files(tmp_path, text)
    pod = make_pod("web")
    pod["metadata"]["labels"] = {"y": ""}
    with agent(tmp_path / "agent", "--alert-rules", str(path), "--no-samples") as made:
        made.start_ready().create(pod)
        assert f"alert rule disabled: error={path}:2:19: expr: " in made.log()
        until(lambda: get_alerts(made).get("Y", {}).get("state") == "firing")
        result = run_command("get", "alerts", "--root-dir", str(made.root_dir), check=True)
        assert "rule X: line 2: expr: " in result.stdout + result.stderr
