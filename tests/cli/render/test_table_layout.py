"""The layout of tables for pipes and terminals."""

import pytest

from podstatus.cli.render.table_layout import TableLayout, shorten_columns
from podstatus.cli.render.tables import Table

TABLE = Table(
    ("NAME", "STATUS", "MESSAGE"),
    tuple((f"pod-{number}", "Running", "it \x1b[2J\nruns") for number in range(5)),
)
NARROW = Table(("NAME", "STATUS"), (("a-long-name", "ok"),))


def text(table: Table, width: int | None, height: int = 100) -> list[str]:
    return [line.plain for line in TableLayout(table, width).within(height)]


def test_a_pipe_gets_one_line_per_row_whatever_is_in_it() -> None:
    message = f"{'words ' * 50}[red]x[/red] :smile:"
    table = Table(("NAME", "MESSAGE"), (("web", f"\x1b[2J\n{message}"), ("[b]db", "short")))
    assert text(table, None) == ["NAME    MESSAGE", f"web     ^[[2J {message}", "[b]db   short"]


def test_names_are_not_cut() -> None:
    assert text(NARROW, 7) == ["NAME", "    STATUS", "a-long-name", "    ok"]


def test_an_empty_cell_that_would_be_continued_takes_no_line() -> None:
    table = Table(("NAME", "SUMMARY"), (("a-long-name-of-an-alert", ""), ("b", "It is down.")))
    assert text(table, 30) == [
        "NAME",
        "    SUMMARY",
        "a-long-name-of-an-alert",
        "b",
        "    It is down.",
    ]


def test_columns_come_closer_before_they_go_below() -> None:
    row = ("default", "web-7d4b9c6f5d-x2x9q", "1/1", "CrashLoopBackOff", "node-1")
    table = Table(("NAMESPACE", "NAME", "READY", "STATUS", "NODE"), (row,))
    assert text(table, 60) == [
        "NAMESPACE NAME                 READY STATUS           NODE",
        "default   web-7d4b9c6f5d-x2x9q 1/1   CrashLoopBackOff node-1",
    ]


def test_gaps_stay_where_they_cost_no_line() -> None:
    table = Table(("NAME", "NODE", "MESSAGE"), (("web", "n1", "It is healthy, and so on."),))
    assert text(table, 30) == [
        "NAME   NODE",
        "    MESSAGE",
        "web    n1",
        "    It is healthy, and so on.",
    ]


def test_columns_without_a_place_go_on_below() -> None:
    row = ("web", "Running", "192.0.2.2", "vm", "Ready for 2 min 3 s, after 2 restarts.")
    table = Table(("NAME", "STATUS", "IP", "NODE", "MESSAGE"), (row, row))
    lines = [
        "NAME STATUS  IP        NODE",
        "    MESSAGE",
        "web  Running 192.0.2.2 vm",
        "    Ready for 2 min 3 s, after 2",
        "    restarts.",
    ]
    assert text(table, 32) == [*lines, *lines[2:]]
    assert text(table, 32, 6) == [*lines, "and 1 more"]


def test_a_message_goes_on_below_itself() -> None:
    said = "Container app ended: Error 3, 2 restarts; it is started again after a back-off."
    table = Table(("NAME", "MESSAGE"), (("web", said), ("worker", "Ready for 3 s.")))
    assert text(table, 50) == [
        "NAME     MESSAGE",
        "web      Container app ended: Error 3, 2 restarts;",
        "         it is started again after a back-off.",
        "worker   Ready for 3 s.",
    ]
    assert text(table, 50, 3)[1:] == ["and 2 more"]


def test_rows_that_do_not_fit_are_counted() -> None:
    lines = text(TABLE, 80, 4)
    assert lines[0].startswith("NAME")
    assert [line.split()[0] for line in lines[1:]] == ["pod-0", "pod-1", "and"]
    assert lines[-1] == "and 3 more"
    assert len(text(TABLE, 80, 6)) == 6


def test_wide_characters_take_their_place() -> None:
    table = Table(("NAME", "STATUS"), (("漢字漢字", "ok"), ("abc", "ok")))
    assert text(table, 15) == ["NAME     STATUS", "漢字漢字 ok", "abc      ok"]


def test_rows_that_follow_stand_below_those_before() -> None:
    layout = TableLayout(NARROW)
    (later,) = TableLayout(Table(("NAME", "STATUS"), (("b", "ok"),)), None, layout.widths).rows()
    assert later[0].plain.index("ok") == layout.heading()[0].plain.index("STATUS")


def test_how_things_are_is_coloured() -> None:
    line = TableLayout(TABLE, 80).within(10)[1]
    assert [(line.plain[span.start : span.end], span.style) for span in line.spans] == [
        ("Running", "green")
    ]


LONG = "web-7d4b9c6f5d-x2x9q-of-a-very-long-deployment-abcde"
PODS = Table(
    ("NAMESPACE", "NAME", "READY", "STATUS"),
    (
        ("default", "web", "1/1", "Running"),
        ("a-namespace-of-a-team", LONG, "0/1", "CrashLoopBackOff"),
    ),
)
LIMITS = {"NAME": 16, "NAMESPACE": 11}


@pytest.mark.parametrize("width", [60, 80, 95])
def test_names_are_shortened_as_far_as_a_line_needs_it(width: int) -> None:
    table = shorten_columns(PODS, width, LIMITS)
    lines = text(table, width)
    assert len(lines) == 3
    assert max(map(len, lines)) == width
    (_, first), (_, shortened) = (row[:2] for row in table.rows)
    assert first == "web"
    begin, _, end = shortened.partition("…")
    assert LONG.startswith(begin)
    assert LONG.endswith(end)
    assert 0 <= len(begin) - len(end) <= 1


def test_names_that_fit_stay() -> None:
    assert shorten_columns(PODS, 98, LIMITS) == PODS


def test_namespaces_are_shortened_after_names() -> None:
    rows = shorten_columns(PODS, 52, LIMITS).rows
    assert rows[1][:2] == ("a-name…-team", "web-7d4b…t-abcde")


def test_where_no_shortening_helps_columns_go_below() -> None:
    assert len(text(shorten_columns(PODS, 30, LIMITS), 30)) == 6
