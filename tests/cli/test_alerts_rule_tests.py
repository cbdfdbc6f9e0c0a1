"""`podstatus alerts test` and `podstatus alerts defaults`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from podstatus.cli.register_commands import app
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import History, HistoryEntry
from podstatus.observe.transitions.compare_statuses import Transition

RULES = "rules: [{name: Slow, expr: pod.phase == 'Pending', for: 1m}]"
SECOND = 1_000_000_000


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path / "tests.yaml"


def rehearse(*words: object) -> Result:
    return CliRunner().invoke(app, ["alerts", "test", *map(str, words)])


def one(steps: str, rules: str = "[rules.yaml]", more: str = "") -> str:
    return f"rules: {rules}\ntests:\n- {{name: it, {more}steps: [{steps}]}}\n"


def test_what_is_as_expected_is_counted(tests: Path) -> None:
    tests.write_text(one("{at: 0s, pods: {web: {}}, expect: []}"))
    done = rehearse(tests)
    assert (done.exit_code, done.stdout) == (0, f"{tests}: 1 test passed\n")


def test_what_is_not_is_shown_with_its_place(tests: Path) -> None:
    tests.write_text(one("{at: 0s, pods: {web: {phase: Pending}}}, {at: 2m, expect: []}"))
    done = rehearse(tests)
    assert (done.exit_code, done.stdout) == (1, f"{tests}: 1 of 1 test failed\n")
    assert done.stderr == (
        f"{tests}:3:63: it: unexpected alerts at 2m0s\n"
        "  expected  nothing\n"
        "  got       Slow pod/default/web firing\n"
    )


def test_all_that_happens_can_be_shown(tests: Path) -> None:
    steps = "{at: 0s, pods: {a: {phase: Pending}, b: {phase: Pending}}}, {at: 30s, pods: {b: gone}}"
    tests.write_text(one(f"{steps}, {{at: 2m, pods: {{a: gone}}}}"))
    assert rehearse("-v", tests).stdout.splitlines()[:-1] == [
        "it",
        "          0s  Slow pod/default/a pending",
        "          0s  Slow pod/default/b pending",
        "         30s  Slow pod/default/b resolved before it fired",
        "        1m0s  Slow pod/default/a firing",
        "        2m0s  Slow pod/default/a resolved",
    ]


@pytest.mark.parametrize("rules", ["[default]", "[]", "[default, rules.yaml]"])
def test_default_rules_are_tested_if_they_are_named_or_nothing_is(tests: Path, rules: str) -> None:
    steps = "{at: 0s, pods: {web: {foreignWrites10m: 1}}, expect: [{rule: ForeignStatusWriter, pod: web}]}"  # noqa: E501
    tests.write_text(one(steps, rules))
    assert rehearse(tests).exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tests: [", "{file}:2:1: invalid YAML"),
        (one("{at: 0s}", "[none.yaml]"), "cannot read {folder}/none.yaml: no such file"),
        (one("{at: 0s}", "[bad.yaml]"), "{folder}/bad.yaml:1:30: expr: there is no pod.fase"),
        (one("{at: 0s}", more="only: [Fast], "), "{file}:3:3: only: there is no rule Fast"),
        (
            one("{at: 0s, expect: [{rule: Slov, pod: web}]}"),
            "{file}:3:47: expect: there is no rule Slov; did you mean Slow?",
        ),
        (
            one("{at: 0s}", more="history: no.db, "),
            "{file}:3:23: history: no such file: {folder}/no.db",
        ),
        (
            one("{at: 0s}", more="history: bad.yaml, "),
            "{file}:3:23: history: cannot read {folder}/bad.yaml",
        ),
        (RULES, "{file}:1:1: this is a rule file, not a test file: use the command alerts check"),
        ("rules: []", "{file}:1:1: the file has no tests"),
    ],
)
def test_a_wrong_file_is_a_failure(tests: Path, text: str, message: str) -> None:
    (tests.parent / "bad.yaml").write_text("rules: [{name: Bad, expr: '  pod.fase'}]")
    tests.write_text(text)
    done = rehearse(tests)
    assert done.exit_code == 1
    assert message.format(file=tests, folder=tests.parent) in done.stderr


def test_a_rule_that_fails_of_a_pod_is_a_failure(tests: Path) -> None:
    rule = "{name: Odd, expr: 'size(pod.name) == 3 && 1 / (size(pod.name) - 3) > 0'}"
    (tests.parent / "rules.yaml").write_text(f"rules: [{rule}]")
    tests.write_text(one("{at: 0s, pods: {web: {}}, expect: []}"))
    done = rehearse(tests)
    assert done.exit_code == 1
    assert "rule Odd: pod default/web: divide by zero" in done.stderr


def test_the_history_of_a_root_dir_is_played(tests: Path) -> None:
    history = History.open(tests.parent / "history.db")
    changes = [(0, "Pending"), (90, "Running")]
    history.append(
        [
            HistoryEntry(
                at=(1_700_000_000 + seconds) * SECOND,
                uid=PodUID("1"),
                namespace="shop",
                name="web",
                transition=Transition(kind="phase", after=phase),
            )
            for seconds, phase in changes
        ]
    )
    history.close()
    steps = (
        "{at: 60s, expect: [{rule: Slow, pod: shop/web}]},"
        "{at: 2m, expect: [{rule: Slow, pod: shop/web, state: resolved}]}"
    )
    for place in (".", "history.db"):
        tests.write_text(one(steps, more=f"history: {place}, "))
        done = rehearse(tests)
        assert (done.exit_code, done.stderr) == (0, "")


def test_the_default_rules_are_printed_and_right(tmp_path: Path) -> None:
    printed = CliRunner().invoke(app, ["alerts", "defaults"])
    file = tmp_path / "rules.yaml"
    file.write_text(printed.stdout)
    done = CliRunner().invoke(app, ["alerts", "check", str(file)])
    assert (done.exit_code, done.stderr) == (0, "")
    count = printed.stdout.count("\n- name: ")
    assert count
    assert f"{count} rules; actions that change pods or nodes are off" in done.stdout


def test_to_disable_what_is_no_default_rule_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("disable: [PodNotRedy]\nrules: []\n")
    done = CliRunner().invoke(app, ["alerts", "check", str(file)])
    assert (done.exit_code, done.stderr) == (
        1,
        f"{file}:1:11: disable: there is no default rule PodNotRedy; did you mean PodNotReady?\n",
    )
