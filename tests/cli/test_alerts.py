"""`podstatus alerts check`."""

import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from podstatus.cli.register_commands import app
from podstatus.client.auth import files

RIGHT = """\
rules:
- name: CrashLoop
  expr: pod.containers.exists(c, c.reason == "CrashLoopBackOff")
  for: 2m
  keepFiringFor: 10m
  actions: [event, deletePod]
- name: Down
  scope: node
  severity: critical
  expr: "!node.ready"
"""
WRONG = "rules:\n- name: A\n  expr: |\n    pod.ready &&\n      pod.fase\n  for: 3\n"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return tmp_path / "rules.yaml"


def check(*files: str | Path, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["alerts", "check", *map(str, files)], input=stdin)


def test_right_rules_are_shown(rules: Path) -> None:
    rules.write_text(RIGHT)
    done = check(rules)
    assert done.exit_code == 0
    assert done.stdout == (
        "NAME        SCOPE   FOR    KEEP    SEVERITY   ACTIONS\n"
        "CrashLoop   pod     2m0s   10m0s   warning    event, deletePod\n"
        "Down        node    -      -       critical   <default>\n"
        f"{rules}: 2 rules; actions that change pods or nodes are off (allowActions is empty)\n"
    )
    note = "note: deletePod has no effect unless it is in allowActions: [deletePod]"
    assert done.stderr == f"{rules}:6:20: {note}\n"


@pytest.mark.parametrize(
    ("allowed", "dry_run", "mode"),
    [
        ("deletePod", "true", ", only as a dry run (dryRun)"),
        ("deletePod", "false", ""),
        ("deletePod, taintNode", "false", ""),
    ],
)
def test_allowed_remediations_are_listed(
    rules: Path, allowed: str, dry_run: str, mode: str
) -> None:
    rules.write_text(f"allowActions: [{allowed}]\ndryRun: {dry_run}\n{RIGHT}")
    assert check(rules).stdout.endswith(f"; allowActions: {allowed}{mode}\n")


def test_all_errors_are_reported_with_their_places(rules: Path) -> None:
    rules.write_text(WRONG)
    done = check(rules)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"{rules}:5:7: expr: there is no pod.fase\n"
        f"{rules}:6:8: for: '3' is not a duration such as 30s, 2m or 1h30m\n"
    )


def test_one_wrong_file_among_several_is_enough(rules: Path, tmp_path: Path) -> None:
    rules.write_text(RIGHT)
    (tmp_path / "wrong.yaml").write_text(WRONG)
    done = check(tmp_path / "wrong.yaml", rules)
    assert done.exit_code == 1
    assert done.stdout.endswith(
        "2 rules; actions that change pods or nodes are off (allowActions is empty)\n"
    )


def test_rules_may_come_from_the_standard_input() -> None:
    done = check("-", stdin=WRONG)
    assert (done.exit_code, done.stderr.partition(": ")[0]) == (1, "<stdin>:5:7")


def test_a_file_that_cannot_be_read_is_named(rules: Path) -> None:
    assert check(rules).stderr == f"cannot read {rules}: no such file or directory\n"
    rules.write_bytes(b"\xff\xfe\xff")
    done = check(rules)
    assert (done.exit_code, done.stderr) == (1, f"cannot read {rules}: not UTF-8 text\n")


def test_a_pipe_without_a_writer_times_out(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PIPE_SECONDS", 0.05)
    os.mkfifo(rules)
    done = check(rules)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"cannot read {rules}: the pipe had no data")


def test_what_another_program_writes_may_be_checked(rules: Path) -> None:
    os.mkfifo(rules)
    writer = threading.Thread(target=rules.write_text, args=(RIGHT,))
    writer.start()
    done = check(rules)
    writer.join()
    assert done.exit_code == 0


def test_without_a_file_the_command_line_is_wrong() -> None:
    assert check().exit_code == 2


def test_files_of_actions_that_cannot_be_used_have_a_note(rules: Path, tmp_path: Path) -> None:
    secret, token = tmp_path / "secret", tmp_path / "token"
    token.write_text("t")
    token.chmod(0o644)
    files = f"secretFile: {secret}, tokenFile: {token}"
    action = f"{{webhook: {{url: 'https://example.org', {files}}}}}"
    rules.write_text(f"rules: [{{name: A, expr: pod.ready, actions: [{action}, log]}}]")
    done = check(rules)
    notes = done.stderr.splitlines()
    assert done.exit_code == 0
    assert [note.partition("note: ")[2].partition(f" {tmp_path}")[0] for note in notes] == [
        "webhook: secretFile: cannot read",
        "webhook: tokenFile:",
    ]
    assert all(note.startswith(f"{rules}:1:46: ") for note in notes)
    secret.write_text("s")
    for file in (secret, token):
        file.chmod(0o600)
    assert check(rules).stderr == ""
