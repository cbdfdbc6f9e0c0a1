"""The chart of the history of a node."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from podstatus.cli.timeline_view.chart import ASCII, BLOCKS, Symbols, draw_timeline
from podstatus.cli.timeline_view.event_lines import event_digest, event_list
from podstatus.cli.timeline_view.intervals import build_node_chart
from podstatus.cli.timeline_view.load_rows import Level, LoadRow, draw_levels, load_rows
from podstatus.cli.timeline_view.time_axis import TimeAxis
from podstatus.node.decide.conditions import AGENT_STOPPED
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.transitions import compare_statuses as kinds
from tests.cli.crash_loop import BEGIN, SECOND
from tests.cli.stopped_agent import LOAD, STORY, condition, entry, sample


def text(lines: list[Text]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def drawn(width: int = 80, signs: Symbols = BLOCKS, until: int = 400) -> list[str]:
    chart = build_node_chart(STORY, LOAD, begin=BEGIN, end=BEGIN + until * SECOND)
    return text(draw_timeline(chart, width, signs))


def test_a_node_that_was_under_pressure_and_stopped() -> None:
    assert drawn() == [
        "2026-11-15T10:00:00.123Z to 2026-11-15T10:06:40.123Z (6 min 40 s; a column is",
        "6.3 s)",
        "",
        "                          10:01    10:02     10:03    10:04     10:05    10:06",
        "                          ╷        ╷         ╷        ╷         ╷        ╷",
        "Ready            █ True ███████████████████████████?·············█ True ████████",
        "MemoryPressure   █ False █▓ True ▓▓▓█ False ███████· agent away ·█ False ███████",
        "unrea..NoExecute                                   ▓·············",
        "agent            █ running ██████████████████····················█ running █████",
        "cpu                  ▁▁▁▁▁▁▁▁▁▁██████████▅▅▅▅▅                          ▁▁▁▁▁▁▁▁",
        "memory               ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▇▇▇▇▇▇                          ▃▃▃▃▃▃▃▃",
        "disk                 ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂                          ▂▂▂▂▂▂▂▂",
        "events                                                          !",
        "",
        "█ good   ▓ failed   ? unknown   · agent away   ! warning",
        "▁▂▃▄▅▆▇█ 0 to 100% used",
        "Always False: DiskPressure.",
        "Used: cpu 10%, at most 95%; memory 30%, at most 85%; disk 20%, at most 20%.",
    ]


def drawn_rows(*entries: HistoryEntry, width: int = 80) -> list[str]:
    chart = build_node_chart(entries, (), begin=BEGIN, end=BEGIN + 100 * SECOND)
    return text(draw_timeline(chart, width))[5:]


def test_shortened_names_stay_distinct() -> None:
    taints = (
        "node.kubernetes.io/unreachable:NoExecute",
        "node.kubernetes.io/unreachable:NoSchedule",
    )
    rows = drawn_rows(
        *(entry(0, kinds.TAINT, taint, after="set") for taint in taints),
        condition(0, AGENT_STOPPED, "", "True"),
        entry(0, kinds.TAINT, "example.com/a-very-long-key:PreferNoSchedule", after="set"),
    )
    assert [row.split(" ")[0] for row in rows[:4]] == [
        "..AgentStopped", "unrea..NoExecute", "unre..NoSchedule", "a-very-long-ke..",
    ]  # fmt: skip


def test_a_planned_stop_is_no_failure() -> None:
    stopped = drawn_rows(condition(0, AGENT_STOPPED, "", "True"))
    assert "░ True ░" in stopped[0]
    assert not any("failed" in line for line in stopped)


def test_a_taint_that_was_found_at_the_start_is_not_said_to_be_set_then() -> None:
    found = entry(0, kinds.TAINT, "a:NoSchedule", after="set", reason="FoundAtStart")
    ((line,),) = event_digest([found], width=80)
    assert line.plain.endswith("taint a:NoSchedule found")


def test_a_terminal_without_blocks_gets_digits() -> None:
    cpu = next(line for line in drawn(signs=ASCII) if line.startswith("cpu"))
    assert set(cpu.removeprefix("cpu")) == {" ", "1", "5", "9"}


def test_the_digest_has_every_change_but_those_of_good_conditions() -> None:
    digest = event_digest(STORY, width=100, omitted_conditions=("DiskPressure",))
    assert [line for lines in digest for line in text(lines)] == [
        "10:00:00.123   agent running; seen; Ready True; MemoryPressure False",
        "10:01:00.123   MemoryPressure True",
        "10:02:00.123   MemoryPressure False",
        "10:03:00.123   agent stopped",
        "10:03:42.123   Ready Unknown; taint node.kubernetes.io/unreachable:NoExecute set",
        "10:05:00.123   agent away for 120.000 s",
        "10:05:00.123   agent running",
        "10:05:00.123   ! AgentRestarted: killed",
        "10:05:01.123   Ready True; taint node.kubernetes.io/unreachable:NoExecute removed",
    ]


def test_the_list_has_every_entry() -> None:
    assert len(event_list(STORY)) == len(STORY)
    assert text(event_list(STORY))[9] == (
        "10:03:42.123   taint node.kubernetes.io/unreachable:NoExecute   → set"
    )


def levels(*samples: NodeLoadSample, away: Any = (), until: float = 3600) -> list[Any]:
    end = BEGIN + round(until * SECOND)
    rows = load_rows(samples, away, begin=BEGIN, end=end)
    return [
        (row.name, [((it.begin - BEGIN) / SECOND, (it.end - BEGIN) / SECOND) for it in row.levels])
        for row in rows
    ]


def test_a_level_holds_until_the_next_sample_but_not_for_ever() -> None:
    assert levels(sample(0, cpu=0.1), sample(60, cpu=0.2)) == [("cpu", [(0, 60), (60, 840)])]


def test_a_gap_ends_a_level() -> None:
    assert levels(sample(0, cpu=0.1), sample(60), sample(90, cpu=0.1), until=100) == [
        ("cpu", [(0, 60), (90, 100)])
    ]


def test_while_no_agent_runs_nothing_is_measured() -> None:
    away = [(BEGIN + 30 * SECOND, BEGIN + 50 * SECOND)]
    assert levels(sample(0, cpu=0.1), sample(60, cpu=0.2), away=away, until=90) == [
        ("cpu", [(0, 30), (60, 90)])
    ]


@pytest.mark.parametrize(("fraction", "shown"), [(0.79, []), (0.8, ["inodes"])])
def test_what_rarely_runs_out_is_shown_when_it_does(fraction: float, shown: list[str]) -> None:
    assert [name for name, _ in levels(sample(0, inodes=fraction))] == shown


def test_what_was_before_the_range_is_not_shown() -> None:
    early, late = sample(-2000, cpu=1.0), sample(-100, cpu=0.5)
    assert levels(early, late, until=10) == [("cpu", [(0, 10)])]


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 50), st.floats(0.0, 3.0))))
def test_a_column_is_as_high_as_its_highest_load(
    given: list[tuple[int, int, float]],
) -> None:
    axis = TimeAxis(begin=0, end=100, columns=10)
    row = LoadRow("cpu", tuple(Level(at, min(100, at + span), it) for at, span, it in given))
    line = "".join(piece for piece, _ in draw_levels(row, axis, BLOCKS.levels))
    assert len(line) == 10
    for column, sign in enumerate(line):
        inside = [
            level.fraction
            for level in row.levels
            if level.begin < (column + 1) * 10 and level.end > column * 10
        ]
        expected = BLOCKS.levels[min(7, int(max(inside) * 8))] if inside else " "
        assert sign == expected


@given(st.integers(40, 250), st.integers(1, 10**6), st.sampled_from([BLOCKS, ASCII]))
def test_no_line_is_wider_than_the_width(width: int, until: int, signs: Symbols) -> None:
    assert all(len(line) <= width for line in drawn(width, signs, until))
