"""`podstatus watch` against a fake agent."""

import json
import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from podstatus.cli import watch_pods as watch_command
from podstatus.cli.client import https_client
from podstatus.cli.client.pod_feed import PodFeed
from podstatus.cli.client.sse import SseEvent, SseLineTooLongError, parse_sse
from podstatus.cli.client.staleness import Staleness
from podstatus.cli.register_commands import app
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.node_load import NodeLoad, ResourceLoad
from tests.cli.fake_node import FakeNode, fake_node
from tests.support.processes.agent_process import ENVIRONMENT, SECONDS, until
from tests.support.processes.programs import COMMAND


def pod(name: str, word: str = "healthy", uid: str = "", **more: Any) -> dict[str, Any]:
    container = {"name": "app", "state": {"state": "running"}, "ready": word == "healthy"}
    ready = {"type": "Ready", "status": "True" if word == "healthy" else "False"}
    return {
        "uid": uid or f"uid-{name}",
        "namespace": "default",
        "name": name,
        "node": "n1",
        "phase": "Running",
        "created": "2026-11-15T10:00:00Z",
        "ips": ["10.0.0.7"],
        "conditions": [ready],
        "containers": [container],
        "health": {"state": word, "message": f"It is {word}."},
        **more,
    }


def gone(name: str) -> dict[str, Any]:
    return {"uid": f"uid-{name}", "namespace": "default", "name": name}


def sent(number: int, event: str, data: Any) -> bytes:
    return f"id: abc-{number}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode()


CONTAINER = {"containers": [{"name": "app"}]}
SYNCED = sent(2, "synced", {"resumed": False})
SILENT = {"freshness": {"serverReachable": False, "serverAgeSeconds": 253.4}}
HEARD = {"freshness": {"serverReachable": True, "serverAgeSeconds": 0.2}}
CUT = b'event: closing\ndata: {"reason": "too slow"}\n\n'


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNode]:
    """An event that ends the watch."""
    monkeypatch.setattr(watch_command, "_RECONNECT_SECONDS", 0.0)
    with fake_node(tmp_path) as node:
        yield node


def watch(root_dir: Path, node: FakeNode, *words: str) -> Result:
    """What is printed until the agent refuses."""
    node.watches.append([b"event: pod\ndata: not JSON\n\n"])
    return CliRunner().invoke(app, ["watch", *words, "--root-dir", str(root_dir)])


def test_a_pipe_gets_a_line_for_each_change(node: FakeNode, tmp_path: Path) -> None:
    first = sent(1, "pod", pod("web")) + sent(1, "pod", pod("web"))
    more = sent(3, "pod", pod("web", "unready")) + sent(4, "deleted", gone("web"))
    node.watches = [[first, SYNCED, b":\n\n", more]]
    result = watch(tmp_path, node)
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "HEALTH"]
    assert [(row[0], row[1], row[-1]) for row in rows[1:3]] == [
        ("web", "1/1", "healthy"),
        ("web", "0/1", "unready"),
    ]
    assert rows[3:] == [["web", "deleted"]]
    assert result.exit_code == 1
    assert "cannot decode the response of the agent" in result.stderr


def test_columns_stay_where_they_are(node: FakeNode, tmp_path: Path) -> None:
    waits = {"name": "app", "state": {"state": "waiting", "reason": "ContainerCreating"}}
    first = sent(1, "pod", pod("a")) + sent(1, "pod", pod("a-much-longer-name")) + SYNCED
    more = [
        sent(3, "pod", pod("b-still-short", "starting", containers=[waits], ips=[])),
        sent(4, "deleted", gone("a")),
        sent(5, "pod", pod("b-still-short", "crashing", created="2020-01-01T00:00:00Z")),
    ]
    node.watches = [[first, *more]]
    heading, *rows = watch(tmp_path, node, "-o", "wide").stdout.splitlines()
    assert len(rows) == 5
    for name in heading.split():
        at = heading.index(name)
        assert {row[at - 1 : at] for row in rows} <= {" ", ""}, name


def test_an_unreachable_agent_is_reported_once(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    web = sent(1, "pod", pod("web")).decode().partition("data: ")[2].strip()
    away = [SseEvent("away", why) for why in ("it broke off", "no agent runs", "no agent runs")]
    events = [SseEvent("pod", web), SseEvent("synced"), *away, SseEvent(), away[0]]
    monkeypatch.setattr(watch_command, "_follow", lambda *_: iter(events))
    assert watch(tmp_path, node).stderr.splitlines() == [
        "podstatus: the agent is unreachable, will retry",
        "podstatus: the agent is reachable again",
        "podstatus: the agent is unreachable, will retry",
    ]


def test_a_watch_goes_on_after_what_it_has_seen(node: FakeNode, tmp_path: Path) -> None:
    node.watches = [[sent(7, "pod", pod("web")), SYNCED, CUT], [sent(9, "deleted", gone("web"))]]
    result = watch(tmp_path, node, "-o", "name")
    assert result.stdout == "pod/web\npod/web\n"
    assert [asked.partition("after=")[2] for asked in node.asked] == ["", "abc-2", "abc-9"]


def test_after_a_reset_only_differences_are_printed(node: FakeNode, tmp_path: Path) -> None:
    reset = sent(1, "reset", {"reason": "restarted"}) + sent(1, "pod", pod("a")) + SYNCED
    both = sent(1, "pod", pod("a")) + sent(2, "pod", pod("b"))
    node.watches = [[both, SYNCED], [reset]]
    lines = watch(tmp_path, node, "-o", "json").stdout.splitlines()
    changes = [json.loads(line) for line in lines]
    assert [(*line, line[next(iter(line))]["name"]) for line in changes] == [
        ("pod", "a"),
        ("pod", "b"),
        ("deleted", "b"),
    ]
    assert changes[0]["pod"]["health"] == {"state": "healthy", "message": "It is healthy."}


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ((), "namespace=default"),
        (("-n", "other"), "namespace=other"),
        (("-A",), ""),
        (("pods", "-A", "-l", "app in (a,b)"), "labelSelector=app+in+%28a%2Cb%29"),
    ],
)
def test_what_is_asked_for(
    node: FakeNode, tmp_path: Path, words: tuple[str, ...], query: str
) -> None:
    watch(tmp_path, node, *words)
    assert node.asked[0].partition("?")[2] == query


def test_wide_says_why(node: FakeNode, tmp_path: Path) -> None:
    node.watches = [[sent(1, "pod", pod("web", "crashing")), SYNCED]]
    heading, row = watch(tmp_path, node, "-A", "-o", "wide").stdout.splitlines()
    assert heading.split()[0] == "NAMESPACE"
    assert heading.split()[-3:] == ["IP", "NODE", "MESSAGE"]
    assert row.split()[-6:] == ["crashing", "10.0.0.7", "n1", "It", "is", "crashing."]


def test_a_watch_may_be_silent_for_longer_than_an_answer_may_take(
    node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(https_client, "_RESPONSE_TIMEOUT_SECONDS", 2.0)
    node.watches = [[sent(1, "pod", pod("web")) + SYNCED, sent(3, "deleted", gone("web"))]]
    node.may_go_on.clear()
    threading.Timer(3.0, node.may_go_on.set).start()
    assert watch(tmp_path, node, "-o", "name").stdout == "pod/web\npod/web\n"
    assert len(node.asked) == 2


def test_mistakes_are_one_line(node: FakeNode, tmp_path: Path) -> None:
    result = watch(tmp_path, node, "secrets")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("podstatus: cannot watch 'secrets', only pods")
    node.refusal = (400, '{"kind": "Status", "message": "no such label"}')
    result = watch(tmp_path, node)
    assert (result.exit_code, result.stderr) == (1, "podstatus: no such label\n")


def test_a_terminal_shows_a_table_that_is_drawn_again(node: FakeNode, tmp_path: Path) -> None:
    waiting = {"state": "waiting", "reason": "ErrImagePull"}
    blocked = {"name": "app", "state": {**waiting, "message": "\x1b[2J\nevil"}}
    evil = pod("web", containers=[blocked])
    node.watches = [[sent(1, "pod", pod("web")) + SYNCED, sent(3, "pod", evil), SYNCED]]
    node.responses["/v1/nodes"] = {"nodes": [{"name": "n1", "ready": True}]}
    node.may_go_on.clear()
    ours, theirs = pty.openpty()
    words = [*COMMAND, "watch", "-o", "wide", "--root-dir", str(tmp_path)]
    environment = {**ENVIRONMENT, "LANG": "C.UTF-8", "COLUMNS": "140", "LINES": "10"}
    process = subprocess.Popen(words, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    got = b""

    def reads(text: bytes) -> bool:
        nonlocal got
        got += os.read(ours, 65536)
        return text in got

    try:
        until(lambda: reads(b"1 pod: 1 healthy; at "), lambda: got)
        node.may_go_on.set()
        until(lambda: reads(b"1 pod: 1 blocked; at "), lambda: got)
        until(lambda: b"node n1: cpu <unknown>, " in got or reads(b"node n1: "), lambda: got)
        process.send_signal(2)
        assert process.wait(SECONDS) == 130
    finally:
        node.may_go_on.set()
        process.kill()
        process.wait()
        os.close(ours)
    assert b"\x1b[2J" not in got
    assert b"^[[2J evil" in got
    assert got.count(b"\x1b[H") >= 2


def test_events_are_read_however_they_are_cut() -> None:
    text = b": hello\r\nid: a-1\nevent: pod\ndata: {\ndata: }\n\n:\nid: a-2\n\nevent: x\ndata"
    events = [SseEvent("pod", "{\n}", "a-1"), SseEvent("", "", "a-2")]
    for size in (1, 2, 7, 1000):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert list(parse_sse(pieces)) == events


def test_an_event_without_end_is_not_kept() -> None:
    with pytest.raises(SseLineTooLongError):
        list(parse_sse(b"x" * 65536 for _ in range(1000)))


def test_events_of_a_newer_agent_are_left_alone() -> None:
    assert PodFeed().apply(SseEvent("novelty", "?")) == []


def test_of_a_cluster_each_row_says_which_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_command, "_RECONNECT_SECONDS", 0.0)
    with fake_node(tmp_path, node="", observes=True) as node:
        node.watches = [[sent(1, "pod", pod("web")), SYNCED]]
        rows = [line.split() for line in watch(tmp_path, node).stdout.splitlines()]
    assert rows[0][-2:] == ["HEALTH", "NODE"]
    assert rows[1][-2:] == ["healthy", "n1"]


def test_a_pipe_gets_the_staleness_of_an_observer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_command, "_RECONNECT_SECONDS", 0.0)
    with fake_node(tmp_path, node="", observes=True) as node:
        node.responses["/v1/status"] = SILENT
        node.watches = [[sent(1, "pod", pod("web")), SYNCED]]
        node.may_go_on.clear()
        print_silence = watch_command.print_staleness

        def tell(silence: str) -> None:
            print_silence(silence)
            node.may_go_on.set()

        monkeypatch.setattr(watch_command, "print_staleness", tell)
        errors = watch(tmp_path, node).stderr
    assert errors.splitlines()[0] == "podstatus: no response from the API server for 4 min 13 s"


def test_the_last_line_says_that_an_observer_hears_nothing() -> None:
    columns = watch_command.Columns(wide=False, namespaces=True, nodes=True)
    foot = watch_command.render_page(
        PodFeed(), "", "no response from the API server for 9 s", columns
    )[-1]
    assert foot.plain == "no response from the API server for 9 s; 0 pods"


def test_the_line_above_it_has_the_load_of_the_node() -> None:
    columns = watch_command.Columns(wide=False, namespaces=True, nodes=False)
    nodes = [NodeSummary(name="a", ready=True, load=NodeLoad(cpu=ResourceLoad(used_fraction=0.5)))]
    page = watch_command.render_page(PodFeed(), "", "", columns, nodes)
    assert page[-2].plain.startswith("node a: cpu 50%, ")
    away = watch_command.render_page(PodFeed(), "it is away", "", columns, nodes)
    assert [line.plain for line in away if "node a" in line.plain] == []


def test_staleness_is_reported_when_it_begins_and_ends(tmp_path: Path) -> None:
    messages: list[str] = []
    with fake_node(tmp_path, node="", observes=True) as node:
        silence = Staleness(lambda: https_client.find_agent(tmp_path, {}), messages.append)
        for status in (SILENT, SILENT, None, HEARD, HEARD):
            node.responses["/v1/status"] = status
            silence.poll_once()
    assert messages == ["no response from the API server for 4 min 13 s", ""]


@pytest.mark.parametrize("words", [("watch",), ("logs", "web", "-f")])
def test_a_command_without_end_ends_with_its_reader(
    node: FakeNode, tmp_path: Path, words: tuple[str, ...]
) -> None:
    node.pods = [{"metadata": {"name": "web", "namespace": "default"}, "spec": CONTAINER}]
    node.watches = [[sent(1, "pod", pod("web")) + SYNCED, SYNCED]]
    node.log = (b"one\n", b"two\n")
    node.may_go_on.clear()
    command = [*COMMAND, *words, "--root-dir", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert (process.wait(SECONDS), process.stderr.read()) == (0, b"")
        assert not node.may_go_on.is_set()
    node.may_go_on.set()
