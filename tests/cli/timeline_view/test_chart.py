"""The chart of a pod history."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from podstatus.cli.timeline_view.chart import ASCII, BLOCKS, Symbols, draw_timeline
from podstatus.cli.timeline_view.event_lines import event_digest, event_list
from podstatus.cli.timeline_view.intervals import build_chart
from podstatus.cli.timeline_view.time_axis import TimeAxis, format_duration
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.transitions import compare_statuses as kinds
from tests.cli.crash_loop import BEGIN, SECOND, crash_loop, moment

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\rx\nReady True"


def text(lines: list[Text]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def drawn(
    moments: list[HistoryEntry],
    seconds: float,
    width: int = 80,
    *,
    begin: float = 0.0,
    signs: Symbols = BLOCKS,
) -> list[str]:
    start, end = BEGIN + round(begin * SECOND), BEGIN + round(seconds * SECOND)
    return text(draw_timeline(build_chart(moments, begin=start, end=end), width, signs))


def row(lines: list[str], name: str) -> str:
    return next(line for line in lines if line.split(" ")[0] == name)[11:]


def test_a_crash_loop_that_recovers() -> None:
    assert drawn(crash_loop(), 180) == [
        "2026-11-15T10:00:00.123Z to 2026-11-15T10:03:00.123Z (3 min; a column is 2.6 s)",
        "",
        "                      10:00:30   10:01:00    10:01:30   10:02:00    10:02:30",
        "                      ╷          ╷           ╷          ╷           ╷",
        "phase      ░█ Running ██████████████████████████████████████████████████████████",
        "Ready      ░░░░██░░░░░░░█░ False ░░░░░░░██░ False ░░░░░░░░░░░░░░░░░░░░░█ True ██",
        "app        ▓▓▒▒█▓▒▒▒▒▒▒▒▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒█▓▒ CrashLoopBackOff ▒▒▒▒▒▒▒▒▒▒█████████",
        "  restarts     ↻1       ↻2              ↻3                             ↻4",
        "log        ░█ running ██████████████████████████████████████████████████████████",
        "events     •!   !        !               !",
        "",
        "█ good   ░ waiting   ▒ back-off   ▓ failed   ↻ restart   • event   ! warning",
        "Always True: Initialized, PodScheduled. Same as Ready: ContainersReady.",
    ]


def test_the_number_of_a_restart_fits_at_the_end() -> None:
    entries = crash_loop()
    end = (entries[-1].at - BEGIN) / SECOND  # the last restart
    (restarts,) = (line for line in drawn(entries, end) if line.startswith("  restarts"))
    assert (restarts[-2:], len(restarts)) == ("↻4", 80)


def test_a_terminal_without_blocks_gets_letters() -> None:
    lines = drawn(crash_loop(), 180, 60, signs=ASCII)
    assert all(line.isascii() for line in lines)
    assert row(lines, "app") == "x~~xx~~~~x~~~~~~~~~~=x~ CrashLoopBackOff ~~======"


def test_a_part_begins_with_how_things_were() -> None:
    lines = drawn(crash_loop(), 60, begin=20)
    assert row(lines, "phase").startswith("█ Running █")
    assert row(lines, "app").startswith("▒ CrashLoopBackOff ▒")
    assert "↻1" not in "".join(lines)
    assert "↻2" in "".join(lines)


def test_what_lasted_a_moment_is_seen() -> None:
    moments = [
        moment(0, kinds.CONTAINER, "app", ("", "running")),
        moment(500, kinds.CONTAINER, "app", ("running", "terminated Error 1")),
        moment(500, kinds.RESTART, "app", ("0", "1")),
        moment(500, kinds.CONTAINER, "app", ("terminated Error 1", "running")),
    ]
    assert row(drawn(moments, 1000, 31), "app") == "██████████▓█████████"


def test_the_last_column_shows_how_it_is_now() -> None:
    moments = [
        moment(0, kinds.CONDITION, "Ready", ("", "True")),
        moment(97, kinds.CONDITION, "Ready", ("True", "False")),
        moment(97.5, kinds.CONDITION, "Ready", ("False", "Unknown")),
    ]
    assert row(drawn(moments, 100, 31), "Ready") == "█ True ████████████?"


def test_a_clock_that_was_set_back_does_not_hide_what_came_later() -> None:
    moments = [
        moment(0, kinds.CONTAINER, "app", ("", "running")),
        moment(50, kinds.CONTAINER, "app", ("running", "terminated Error 1")),
        moment(20, kinds.CONTAINER, "app", ("terminated Error 1", "waiting CrashLoopBackOff")),
    ]
    assert row(drawn(moments, 100, 31), "app") == "██████████▓▒▒▒▒▒▒▒▒▒"


def test_a_pod_of_the_same_name_has_its_own_spells() -> None:
    moments = [
        moment(0, kinds.PHASE, "", ("", "Running"), uid="u1"),
        moment(40, kinds.DELETION, "", ("", "30 s"), uid="u1"),
        moment(60, kinds.FINISHED, uid="u1"),
        moment(80, kinds.PHASE, "", ("", "Running"), uid="u2"),
    ]
    assert row(drawn(moments, 100, 111), "phase") == (
        f"█ Running {'█' * 30}░ Terminating {'░' * 6}{' ' * 20}█ Running {'█' * 10}"
    )


def test_what_the_history_has_forgotten_is_taken_from_what_it_says_was_before() -> None:
    moments = [moment(50, kinds.PHASE, "", ("Pending", "Failed"))]
    assert row(drawn(moments, 100, 51), "phase") == f"░ Pending {'░' * 10}▓ Failed {'▓' * 11}"


def test_a_condition_of_which_only_the_reason_changes_is_one_bar() -> None:
    moments = [
        moment(0, kinds.CONDITION, "Ready", ("", "False"), "One"),
        moment(50, kinds.CONDITION, "Ready", ("False", "False"), "Other"),
    ]
    assert row(drawn(moments, 100, 31), "Ready") == "░ False ░░░░░░░░░░░░"


def test_the_tone_tells_what_the_word_means() -> None:
    states = {
        "running": "█",
        "waiting": "░",
        "waiting PodInitializing": "░",
        "waiting ImagePullBackOff": "▒",
        "waiting ErrImagePull": "▓",
        "terminated Completed 0": "─",
        "terminated OOMKilled 137": "▓",
    }
    for state, sign in states.items():
        lines = drawn([moment(0, kinds.CONTAINER, "app", ("", state))], 1)
        assert set(row(lines, "app")) & set("█░▒▓─") == {sign}, state


def test_good_and_bad_conditions_have_different_severities() -> None:
    for type_, status, reason, sign in [
        ("Ready", "True", "", "█"),
        ("Ready", "False", "ContainersNotReady", "░"),
        ("Ready", "False", "PodCompleted", "─"),
        ("Ready", "False", "PodFailed", "▓"),
        ("PodResizePending", "True", "Deferred", "░"),
        ("DisruptionTarget", "False", "", "─"),
        ("mine.org/gate", "False", "", "░"),
        ("Ready", "Odd", "", "?"),
    ]:
        moments = [moment(0, kinds.CONDITION, type_, ("", status), reason)]
        assert sign in row([*drawn(moments, 1)], type_[:24]), (type_, status)


def test_nothing_of_others_is_obeyed_or_becomes_a_line() -> None:
    moments = [
        moment(0, kinds.CONTAINER, EVIL, ("", f"waiting {EVIL}"), EVIL, EVIL),
        moment(0, kinds.CONDITION, EVIL, ("", EVIL), EVIL, EVIL),
        moment(0, kinds.RESTART, EVIL, ("", EVIL)),
        moment(0, kinds.EVENT, EVIL, ("", "Warning"), EVIL, EVIL),
    ]
    digest = [line for lines in event_digest(moments, width=1000) for line in lines]
    lines = [*drawn(moments, 100), *text(event_list(moments)), *text(digest)]
    assert not [char for char in "".join(lines) if char in "\x1b\x07\x9b\u202e\r\n"]
    assert not [line for line in lines if line.startswith("Ready")]
    assert len(event_list(moments)) == 4
    assert len(digest) == 2


def test_the_list_has_every_moment_with_its_time() -> None:
    moments = crash_loop()
    lines = text(event_list(moments))
    assert len(lines) == len(moments)
    assert lines[0] == "10:00:00.123   seen"
    assert lines[15] == (
        "10:00:02.623   condition Ready             True → False (ContainersNotReady)"
    )
    assert lines[18] == (
        "10:00:02.873   event app                   "
        "Warning BackOff: back-off restarting failed container app"
    )


def test_the_digest_has_a_line_for_what_happened_at_once() -> None:
    lines = [line for lines in event_digest(crash_loop()[8:25], width=60) for line in lines]
    assert text(lines) == [
        "10:00:00.523   • Pulled app: Container image is there",
        "10:00:00.623   log running; app running; phase Running;",
        "               Ready True; ContainersReady True",
        "10:00:02.623   app Error 3; Ready False; ContainersReady",
        "               False",
        "10:00:02.823   app CrashLoopBackOff",
        "10:00:02.873   ! BackOff app: back-off restarting failed",
        "               container app",
        "10:00:12.623   app restart 1, running; Ready True;",
        "               ContainersReady True",
        "10:00:14.623   app Error 3; Ready False",
    ]


def test_the_digest_has_a_word_for_everything() -> None:
    moments = [
        moment(0, kinds.FIRST_SEEN),
        moment(1, kinds.PHASE, "", ("Running", "Failed"), "Evicted"),
        moment(2, kinds.READINESS, "app", ("True", "False")),
        moment(3, kinds.CONDITION, "DisruptionTarget", ("True", "")),
        moment(4, kinds.DELETION, "", ("", "30 s")),
        moment(5, kinds.SYNC, "", ("", "1.5 s")),
        moment(6, kinds.FOREIGN_WRITE, "", ("", ""), "ForeignStatusWrite", "foreign write"),
        moment(7, kinds.FINISHED),
    ]
    lines = [text(lines)[0][15:] for lines in event_digest(moments, width=100, symbols=ASCII)]
    assert lines == [
        "seen",
        "phase Failed (Evicted)",
        "app not ready",
        "DisruptionTarget (none)",
        "deletion 30 s",
        "* sync 1.5 s",
        "! ForeignStatusWrite: foreign write",
        "finished",
    ]


def digest(moments: list[HistoryEntry], width: int = 100, **more: Any) -> list[str]:
    lines = event_digest(moments, width=width, **more)
    return [line[15:] for line in text([line for lines in lines for line in lines])]


def test_the_digest_does_not_say_again_what_the_drawing_says() -> None:
    lines = digest(
        crash_loop()[:8], omitted_conditions=("Initialized", "ContainersReady", "PodScheduled")
    )
    assert lines == [
        "seen; app ContainerCreating; log ContainerCreating; phase Pending; Ready False"
    ]


def test_events_that_are_said_again_are_counted() -> None:
    pulls = [
        moment(n * 10.0 + more, kinds.EVENT, "app", ("", type_), reason, message)
        for n in range(3)
        for more, type_, reason, message in [
            (0, "Warning", "Failed", "no such image"),
            (2, "Normal", "BackOff", "later"),
        ]
    ]
    change = moment(29, kinds.PHASE, "", ("Pending", "Failed"))
    after = moment(30, kinds.EVENT, "app", ("", "Warning"), "Failed", "no such image")
    lines = digest([*pulls, change, after])
    assert lines == [
        "! Failed app: no such image ×3, until 10:00:20.123",  # noqa: RUF001
        "• BackOff app: later ×3, until 10:00:22.123",  # noqa: RUF001
        "phase Failed",
        "! Failed app: no such image",
    ]
    assert "x3, until" in digest(pulls, symbols=ASCII)[0]


def test_events_of_a_start_take_a_line() -> None:
    start = [
        moment(0, kinds.EVENT, name, ("", "Normal"), reason, "as usual")
        for name in ("app", "log")
        for reason in ("Pulled", "Created", "Started")
    ]
    failed = moment(0, kinds.EVENT, "app", ("", "Warning"), "Failed", "it broke")
    assert digest([*start, failed]) == [
        "• Pulled, Created, Started app",
        "• Pulled, Created, Started log",
        "! Failed app: it broke",
    ]


def test_the_words_of_others_are_cut_where_a_reader_would() -> None:
    said = '{"code":500,"cause":{"kind":"Timeout","after":"30s"}}'
    failed = moment(0, kinds.EVENT, "app", ("", "Warning"), "Failed", said)
    assert digest([failed], 48) == [
        '! Failed app: {"code":500,',
        '"cause":{"kind":"Timeout",',
        '"after":"30s"}}',
    ]


AWAY = [
    moment(0, kinds.PHASE, "", ("", "Running")),
    moment(0, kinds.CONDITION, "Initialized", ("", "True")),
    moment(0, kinds.CONTAINER, "app", ("", "running")),
    moment(60, kinds.AGENT_DOWNTIME, "", ("", "20.000 s")),
    moment(60.002, kinds.RESTART, "app", ("0", "1")),
    moment(60.002, kinds.CONTAINER, "app", ("running", "terminated Error 3"), "Error"),
]


def test_a_state_during_downtime_is_not_drawn() -> None:
    lines = drawn(AWAY, 100, 111)
    assert (
        row(lines, "phase") == f"█ Running {'█' * 30}· agent away {'·' * 7}{'█ Running '}{'█' * 30}"
    )
    # It had terminated when the agent was back, at an unknown time.
    assert row(lines, "app") == f"█ running {'█' * 30}· agent away {'·' * 7}▓ Error 3 {'▓' * 30}"
    assert "· agent away" in lines[-2]
    assert lines[-1] == "Always True: Initialized."
    assert digest(AWAY)[1:] == ["agent away for 20.000 s", "app restart 1, Error 3"]
    assert text(event_list(AWAY))[3].endswith("away                    20.000 s")


def test_until_an_agent_finds_what_has_changed_nothing_is_drawn() -> None:
    found = moment(61, kinds.CONTAINER, "app", ("running", "terminated Error 3"), "Error")
    lines = drawn([*AWAY[:4], found], 100, 111)
    assert row(lines, "app") == f"█ running {'█' * 30}· agent away {'·' * 7} ▓ Error 3 {'▓' * 29}"


def test_a_short_absence_is_seen_in_the_drawing_of_a_day() -> None:
    assert row(drawn(AWAY[:4], 86_400, 31, signs=ASCII), "phase") == ",= Running ========="


def test_what_was_noted_just_before_an_absence_was_seen() -> None:
    ready = moment(40.5, kinds.CONDITION, "Ready", ("", "True"))
    lines = drawn([*AWAY[:3], ready, AWAY[3]], 100, 111)
    assert row(lines, "Ready") == f"{' ' * 40}█· agent away {'·' * 6}█ True {'█' * 33}"


def test_an_absence_that_is_none_is_left_alone() -> None:
    for odd in ("", "soon", "0 s", "-5 s"):
        moments = [AWAY[0], moment(60, kinds.AGENT_DOWNTIME, "", ("", odd))]
        assert row(drawn(moments, 100, 31), "phase").startswith("█ Running █"), odd


def test_times_have_a_date_if_there_are_several_days() -> None:
    moments = [moment(0, kinds.FIRST_SEEN), moment(86_400, kinds.FINISHED)]
    assert text(event_list(moments)) == [
        "2026-11-15T10:00:00.123Z   seen",
        "2026-11-16T10:00:00.123Z   finished",
    ]


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.05, ["10:00:00.140", "10:00:00.160"]),
        (10, ["10:00:02", "10:00:04", "10:00:06", "10:00:08"]),
        (3600, ["10:10", "10:20", "10:30", "10:40", "10:50"]),
        (86_400, ["11-15 12:00", "11-15 18:00", "11-16 00:00", "11-16 06:00"]),
        (864_000, ["2026-11-17", "2026-11-19", "2026-11-21", "2026-11-23"]),
    ],
)
def test_round_times_get_the_labels(seconds: float, labels: list[str]) -> None:
    axis = TimeAxis(begin=BEGIN, end=BEGIN + round(seconds * SECOND), columns=60)
    assert [tick.label for tick in axis.ticks()] == labels


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0404, "40.4 ms"), (3.94, "3.9 s"), (90, "1 min 30 s"), (90061, "1 d 1 h"), (60, "1 min")],
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds * SECOND) == text


states = st.sampled_from(
    [
        "",
        "True",
        "False",
        "Running",
        "Failed",
        "running",
        "waiting X",
        "5000.000 s",
        "1e300 s",
        EVIL,
    ]
)
happenings = st.builds(
    moment,
    st.floats(-10, 10**6),
    st.sampled_from([v for k, v in vars(kinds).items() if k.isupper() and isinstance(v, str)]),
    st.sampled_from(["", "Ready", "app", "phase", "a" * 63, EVIL]),
    st.tuples(states, states),
    states,
    states,
    st.sampled_from(["u1", "u2"]),
)


@given(
    st.lists(happenings, max_size=30),
    st.integers(40, 250),
    st.floats(0, 10**6),
    st.floats(0, 10**6),
    st.sampled_from([BLOCKS, ASCII]),
)
def test_no_line_is_wider_than_the_width(
    moments: list[HistoryEntry], width: int, begin: float, more: float, signs: Symbols
) -> None:
    lines = drawn(moments, begin + more, width, begin=begin, signs=signs)
    assert all(len(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)
