"""Results are compared with the list in both directions."""

import pytest

from tests.node_e2e.ginkgo_suite import Failure, SpecReport
from tests.node_e2e.listed_tests import PARALLEL, ListedTest
from tests.node_e2e.verdict import Table, results_of, results_of_focus

NAME = "[sig-node] Probing container should pass"


def listed(name: str = NAME, *, reason: str = "") -> ListedTest:
    return ListedTest(name=name, queue=PARALLEL, reason=reason, is_slow=False)


def ran(state: str, leaf: str = "should pass") -> SpecReport:
    failure = None if state == "passed" else Failure(message="timed out\nafter 300 s")
    return SpecReport(
        leaf_node_type="It",
        leaf_node_text=leaf,
        container_hierarchy_texts=["[sig-node] Probing container"],
        state=state,
        failure=failure,
    )


@pytest.mark.parametrize(
    ("state", "reason", "is_expected"),
    [
        ("passed", "", True),
        ("failed", "", False),
        ("timedout", "", False),
        ("failed", "image", True),
        ("passed", "image", False),
    ],
)
def test_a_result_is_compared_with_the_list(state: str, reason: str, is_expected: bool) -> None:
    (result,) = results_of([listed(reason=reason)], [ran(state)])
    assert result.is_expected is is_expected
    assert Table([result]).unexpected == ([] if is_expected else [result])


@pytest.mark.parametrize("reason", ["", "image"])
def test_a_test_that_did_not_run_is_unexpected(reason: str) -> None:
    (result,) = results_of([listed(reason=reason)], [])
    assert not result.is_expected
    assert "did not run" in result.message


def test_the_message_is_the_first_line_of_the_failure() -> None:
    (failed,) = results_of([listed()], [ran("failed")])
    assert failed.message == "timed out"
    (passed,) = results_of([listed(reason="image")], [ran("passed")])
    assert passed.message == "it passed, but tests.yaml says that it cannot: image"


def test_a_focused_test_that_is_not_listed_has_to_pass() -> None:
    other = ran("failed", "should not be listed")
    results = results_of_focus([ran("failed"), other], [listed(reason="image")])
    assert [result.is_expected for result in results] == [True, False]


def test_the_table_has_a_row_for_each_family_and_a_sum() -> None:
    tests = [listed(), listed(f"{NAME} 2", reason="image"), listed(f"{NAME} 3", reason="image")]
    reports = [ran("passed"), ran("failed", "should pass 2"), ran("failed", "should pass 3")]
    assert Table(results_of(tests, reports)).render().splitlines() == [
        "| family                     | passed | failed | why |",
        "| -------------------------- | ------ | ------ | --- |",
        "| sig-node Probing container |      1 |      2 | 2 x image |",
        "| all                        |      1 |      2 |  |",
    ]
