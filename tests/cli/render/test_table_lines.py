"""Tables that are redrawn on a terminal."""

from podstatus.cli.render.styled_text import Line
from podstatus.cli.render.table_lines import table_lines
from podstatus.cli.render.tables import Table

TABLE = Table(
    ("NAME", "STATUS", "MESSAGE"),
    tuple((f"pod-{number}", "Running", "it \x1b[2J\nruns") for number in range(5)),
)


def text(lines: list[Line]) -> list[str]:
    return ["".join(piece.text for piece in line).rstrip() for line in lines]


def test_lines_are_cut_at_the_edge() -> None:
    lines = text(table_lines(Table(("NAME", "STATUS"), (("a-long-name", "ok"),)), 7, 10))
    assert lines == ["NAME", "    STA", "a-long-", "    ok"]


def test_columns_come_closer_before_they_go_below() -> None:
    row = ("default", "web-7d4b9c6f5d-x2x9q", "1/1", "CrashLoopBackOff", "node-1")
    table = Table(("NAMESPACE", "NAME", "READY", "STATUS", "NODE"), (row,))
    assert text(table_lines(table, 60, 10)) == [
        "NAMESPACE NAME                 READY STATUS           NODE",
        "default   web-7d4b9c6f5d-x2x9q 1/1   CrashLoopBackOff node-1",
    ]


def test_gaps_stay_where_they_cost_no_line() -> None:
    table = Table(("NAME", "NODE", "MESSAGE"), (("web", "n1", "It is healthy, and so on."),))
    assert text(table_lines(table, 30, 10)) == [
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
    assert text(table_lines(table, 32, 10)) == [*lines, *lines[2:]]
    assert text(table_lines(table, 32, 6)) == [*lines, "and 1 more"]


def test_a_message_goes_on_below_itself() -> None:
    said = "Container app ended: Error 3, 2 restarts; it is started again after a back-off."
    table = Table(("NAME", "MESSAGE"), (("web", said), ("worker", "Ready for 3 s.")))
    assert text(table_lines(table, 50, 10)) == [
        "NAME     MESSAGE",
        "web      Container app ended: Error 3, 2 restarts;",
        "         it is started again after a back-off.",
        "worker   Ready for 3 s.",
    ]
    assert text(table_lines(table, 50, 3))[1:] == ["and 2 more"]


def test_rows_that_do_not_fit_are_counted() -> None:
    lines = text(table_lines(TABLE, 80, 4))
    assert lines[0].startswith("NAME")
    assert [line.split()[0] for line in lines[1:]] == ["pod-0", "pod-1", "and"]
    assert lines[-1] == "and 3 more"
    assert len(text(table_lines(TABLE, 80, 6))) == 6


def test_wide_characters_take_their_place() -> None:
    lines = table_lines(Table(("NAME", "STATUS"), (("漢字漢字", "ok"), ("abc", "ok"))), 15, 10)
    assert text(lines) == ["NAME     STATUS", "漢字漢字 ok", "abc      ok"]


def test_how_things_are_is_coloured() -> None:
    _, row, *_ = table_lines(TABLE, 80, 10)
    assert [piece.style for piece in row] == ["", "green", ""]
