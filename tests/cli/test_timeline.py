"""`podstatus timeline` against a fake agent with a history."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import structs
from typer.testing import CliRunner, Result

from podstatus.cli import timeline_page as timeline_command
from podstatus.cli.register_commands import app
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.transitions.compare_statuses import Transition
from podstatus.web.v1.wire import transition_view
from tests.cli.crash_loop import BEGIN, SECOND, crash_loop
from tests.cli.fake_node import FakeNode, fake_node
from tests.support.processes.on_terminal import on_terminal

PATH = "/v1/pods/default/crash"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNode]:
    now = Time.from_unix_nanos(BEGIN + 180 * SECOND)
    monkeypatch.setattr(timeline_command, "current_time", lambda: now)
    with fake_node(tmp_path) as node:
        node.responses[f"{PATH}/timeline"] = answer(crash_loop())
        node.responses[PATH] = {"pod": pod()}
        yield node


def pod(**more: Any) -> dict[str, Any]:
    health = {"state": "healthy", "message": "Ready for 21 s, after 4 restarts."}
    return {"uid": "u1", "namespace": "default", "name": "crash", "health": health, **more}


def answer(moments: list[HistoryEntry], **more: Any) -> dict[str, Any]:
    transitions = [
        msgspec.to_builtins(transition_view(structs.replace(moment, id=number)))
        for number, moment in enumerate(moments, start=1)
    ]
    return {
        "transitions": transitions,
        "history": {},
        "after": len(transitions),
        "more": False,
        **more,
    }


def timeline(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["timeline", *words, "--root-dir", str(root_dir)])


@pytest.mark.usefixtures("node")
def test_it_is_drawn_with_what_happened_below(tmp_path: Path) -> None:
    result = timeline(tmp_path, "crash", "--width", "80")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0, result.stderr
    assert lines[0] == "default/crash is healthy. Ready for 21 s, after 4 restarts."
    assert lines[7] == (
        "app        ▓▓▒▒█▓▒▒▒▒▒▒▒▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒█▓▒ CrashLoopBackOff ▒▒▒▒▒▒▒▒▒▒█████████"
    )
    assert lines[-1] == "10:02:38.623   app restart 4, running; Ready True"


@pytest.mark.usefixtures("node")
def test_the_list_has_every_moment_in_order(tmp_path: Path) -> None:
    lines = timeline(tmp_path, "crash", "--list").stdout.splitlines()
    assert len(lines) == len(crash_loop())
    assert lines == sorted(lines, key=lambda line: line[:12])


def test_only_the_last_ones_are_listed_below_a_drawing(node: FakeNode, tmp_path: Path) -> None:
    node.responses[f"{PATH}/timeline"] = answer(crash_loop() + crash_loop())
    lines = timeline(tmp_path, "crash").stdout.splitlines()
    command = f"podstatus timeline crash --list --root-dir {tmp_path}"
    assert f"(8 earlier lines: {command})" in lines


@pytest.mark.usefixtures("node")
def test_a_part_of_it(tmp_path: Path) -> None:
    lines = timeline(tmp_path, "crash", "--since", "30s", "--list").stdout.splitlines()
    assert [line[:12] for line in lines] == ["10:02:38.623"] * 4
    document = json.loads(timeline(tmp_path, "crash", "--since", "30s", "-o", "json").stdout)
    assert [moment["kind"] for moment in document["transitions"]] == [
        "restart",
        "container",
        "condition",
        "condition",
    ]
    drawn = timeline(tmp_path, "crash", "--since", "1m").stdout
    assert drawn.splitlines()[1].startswith("2026-11-15T10:02:00.123Z to 2026-11-15T10:03:00.123Z")


@pytest.mark.usefixtures("node")
def test_other_forms_have_it_all(tmp_path: Path) -> None:
    document = json.loads(timeline(tmp_path, "crash", "-o", "json").stdout)
    assert document["transitions"][0] == {
        "at": "2026-11-15T10:00:00.123Z",
        "id": 1,
        "kind": "seen",
        "name": "crash",
        "namespace": "default",
        "uid": "u1",
    }
    assert yaml.safe_load(timeline(tmp_path, "crash", "-o", "yaml").stdout) == document


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("failed", "default/crash has failed. Why."),
        ("unknown", "default/crash has an unknown outcome. Why."),
        ("ending", "default/crash is ending. Why."),
    ],
)
def test_the_first_line_is_a_sentence_for_every_health_state(
    node: FakeNode, tmp_path: Path, state: str, sentence: str
) -> None:
    node.responses[PATH] = {"pod": pod() | {"health": {"state": state, "message": "Why."}}}
    assert timeline(tmp_path, "crash").stdout.splitlines()[0] == sentence


def test_a_pod_that_is_gone_still_has_a_history(node: FakeNode, tmp_path: Path) -> None:
    del node.responses[PATH]
    assert timeline(tmp_path, "crash").stdout.startswith("default/crash is deleted.\n")


def finished_pod() -> list[HistoryEntry]:
    """A pod that ran for 10 s and failed."""
    failed = parse_container_state("terminated Error 3")
    running = parse_container_state("running")
    changes = [
        (0, Transition(kind="seen")),
        (0, Transition(kind="phase", after="Pending")),
        (30, Transition(kind="container", subject="app", state_after=running)),
        (30, Transition(kind="phase", before="Pending", after="Running")),
        (39, Transition(kind="container", subject="app", state_before=running, state_after=failed)),
        (39, Transition(kind="phase", before="Running", after="Failed")),
        (40, Transition(kind="finished")),
    ]
    return [
        HistoryEntry(
            at=BEGIN + seconds * SECOND,
            uid=PodUID("u1"),
            namespace="default",
            name="crash",
            transition=change,
        )
        for seconds, change in changes
    ]


def test_a_range_after_the_end_of_a_finished_pod_has_its_last_states(
    node: FakeNode, tmp_path: Path
) -> None:
    node.responses[f"{PATH}/timeline"] = answer(finished_pod())
    lines = timeline(tmp_path, "crash", "--since", "20s", "--width", "60").stdout.splitlines()
    assert lines[1].startswith("2026-11-15T10:02:40.123Z to 2026-11-15T10:03:00.123Z")
    rows = [line.split(maxsplit=1) for line in lines if line.startswith(("phase", "app"))]
    assert [(name, bar.strip("▓ ")) for name, bar in rows] == [
        ("phase", "Failed"),
        ("app", "Error 3"),
    ]
    # Without a range, the chart ends with the pod.
    whole = timeline(tmp_path, "crash", "--width", "60").stdout.splitlines()
    assert whole[1].startswith("2026-11-15T10:00:00.123Z to 2026-11-15T10:00:40.123Z")
    # A range that begins before the end has the rest, too.
    part = timeline(tmp_path, "crash", "--since", "145s", "--width", "60").stdout.splitlines()
    assert part[1].startswith("2026-11-15T10:00:35.123Z to 2026-11-15T10:03:00.123Z")
    assert any(line.startswith("app") and "Error 3" in line for line in part)


def test_a_deleted_pod_has_no_states_after_its_end(node: FakeNode, tmp_path: Path) -> None:
    del node.responses[PATH]
    node.responses[f"{PATH}/timeline"] = answer(finished_pod())
    lines = timeline(tmp_path, "crash", "--since", "145s", "--width", "60").stdout.splitlines()
    assert lines[1].startswith("2026-11-15T10:00:35.123Z to 2026-11-15T10:00:40.123Z")
    lines = timeline(tmp_path, "crash", "--since", "20s", "--width", "60").stdout.splitlines()
    assert lines[1].startswith("2026-11-15T10:02:40.123Z to 2026-11-15T10:03:00.123Z")
    assert not any(line.startswith(("phase", "app")) for line in lines)


def test_an_observer_has_no_pods_that_could_be_bound_to_it(tmp_path: Path) -> None:
    with fake_node(tmp_path, observes=True):
        result = timeline(tmp_path, "none")
    assert result.stderr.startswith(
        "podstatus: no pod 'none' in namespace default, and no history of one; to see all pods: "
    )


def test_missing_entries_are_reported(node: FakeNode, tmp_path: Path) -> None:
    lost = {"overflowed": 2, "lostEvents": 1}
    node.responses[f"{PATH}/timeline"] = answer(crash_loop(), history=lost)
    assert timeline(tmp_path, "crash").stderr == (
        "podstatus: the history queue overflowed by 3 changes; entries are missing\n"
    )


def test_all_pages_are_read(node: FakeNode, tmp_path: Path) -> None:
    node.responses[f"{PATH}/timeline"] = answer(crash_loop(), more=True)
    count = len(crash_loop())
    # The fake says the same again, and that it ends there: so there are two.
    assert len(timeline(tmp_path, "crash", "--list").stdout.splitlines()) == 2 * count
    assert [asked.partition("after=")[2] for asked in node.asked[-2:]] == ["0", str(count)]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("none",),
            1,
            (
                "no pod 'none' in namespace default is bound to node n1, and there is no history "
                "of one; to see why: podstatus describe pod none --root-dir "
            ),
        ),
        (("crash", "--since", "soon"), 2, "--since: 'soon' is not a duration such as 10s"),
        (("crash", "--since=-1s"), 2, "--since must be greater than 0"),
    ],
)
@pytest.mark.usefixtures("node")
def test_mistakes_are_one_line(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    result = timeline(tmp_path, *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(f"podstatus: {message}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [(), ("crash", "--color"), ("crash", "-o", "wide")])
def test_a_wrong_command_line_is_not_another_failure(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert timeline(tmp_path, *words).exit_code == 2


@pytest.mark.parametrize("body", [{"transitions": 1}, {"transitions": [{"at": "noon"}]}])
def test_an_undecodable_timeline_is_reported(node: FakeNode, tmp_path: Path, body: Any) -> None:
    node.responses[f"{PATH}/timeline"] = body
    result = timeline(tmp_path, "crash")
    assert result.exit_code == 1
    assert "cannot decode the response of the agent" in result.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("node")
def test_a_terminal_gets_colors_unless_no_color_is_set(tmp_path: Path) -> None:
    words = ("timeline", "crash", "--root-dir", str(tmp_path), "--width", "60")
    code, got = on_terminal(*words)
    assert code == 0
    assert b"\x1b[31m" in got
    assert "█".encode() in got
    for mind in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert b"\x1b" not in on_terminal(*words, environment=mind)[1]


@pytest.mark.slow
@pytest.mark.usefixtures("node")
def test_a_terminal_without_blocks_gets_letters(tmp_path: Path) -> None:
    words = ("timeline", "crash", "--root-dir", str(tmp_path))
    ascii_alone = {"PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    _, drawn = on_terminal(*words, environment=ascii_alone)
    _, listed = on_terminal(*words, "--list", environment=ascii_alone)
    assert b"= Running =" in drawn
    assert b"False -> True" in listed
    assert b"\\u" not in drawn + listed


@pytest.mark.slow
def test_a_terminal_obeys_nothing(node: FakeNode, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x9b31m\u202e\r\nReady"
    timeline_page = answer(crash_loop())
    for moment in timeline_page["transitions"]:
        moment.update(reason=evil, message=evil, subject=evil)
    node.responses[f"{PATH}/timeline"] = timeline_page
    node.responses[PATH] = {"pod": pod(health={"word": "failed", "sentence": evil})}
    for more in ((), ("--list",), ("-o", "json"), ("-o", "yaml")):
        words = ("timeline", "crash", "--root-dir", str(tmp_path), *more)
        _, got = on_terminal(*words, environment={"NO_COLOR": "1"})
        assert not set(got.decode()) & set("\x1b\x07\x9b\u202e\r"), more
