"""Which tests a command line selects."""

import pytest

from tests.node_e2e.command_line import parse_options
from tests.node_e2e.listed_tests import PARALLEL, ListedTest

TESTS = {
    name: ListedTest(name=name, queue=PARALLEL, reason=reason, is_slow=name == "slow")
    for name, reason in (("quick", ""), ("slow", ""), ("cannot", "image"))
}


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        ([], {"quick", "slow", "cannot"}),
        (["--keep"], {"quick", "slow", "cannot"}),
        (["--required"], {"quick", "slow"}),
        (["--sample"], {"quick"}),
    ],
)
def test_the_options_select_listed_tests(arguments: list[str], selected: set[str]) -> None:
    options = parse_options(arguments)
    assert {name for name, test in TESTS.items() if options.selects(test)} == selected


def test_only_one_selection_is_possible(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--sample", "--focus", "x"])
    assert "not allowed with argument" in capsys.readouterr().err
