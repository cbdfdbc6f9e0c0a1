"""Compares results with the list, and renders the table. Pure."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tests.node_e2e.ginkgo_suite import SpecReport
from tests.node_e2e.listed_tests import ListedTest

_HEADER = ("family", "passed", "failed", "why")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a test."""

    name: str
    family: str
    passed: bool
    message: str = ""
    """The first line of the failure, or that it passed unexpectedly."""
    reason: str = ""
    """Why it cannot pass, if it is listed so."""
    seconds: float = 0.0

    @property
    def is_expected(self) -> bool:
        return self.passed != bool(self.reason)


class Table(msgspec.Struct, frozen=True):
    """The results by family."""

    results: Sequence[Result]

    @property
    def unexpected(self) -> list[Result]:
        """Failures without a listed reason, and passes in spite of one."""
        return [result for result in self.results if not result.is_expected]

    def render(self) -> str:
        """Return a Markdown table; its last row is the sum."""
        families = sorted({result.family for result in self.results})
        rows = [
            _row(family, [result for result in self.results if result.family == family])
            for family in families
        ]
        rows.append((*_row("all", self.results)[:3], ""))
        widths = [max(len(row[i]) for row in (_HEADER, *rows)) for i in range(3)]
        lines = [_line(row, widths) for row in (_HEADER, tuple("-" * w for w in (*widths, 3)))]
        return "\n".join([*lines, *(_line(row, widths) for row in rows)])


def results_of(tests: Iterable[ListedTest], reports: Iterable[SpecReport]) -> list[Result]:
    """Return a result for each test; tests that did not run have failed."""
    by_name = {report.name: report for report in reports}
    return [_result(test.name, by_name.get(test.name), test.reason) for test in tests]


def results_of_focus(reports: Iterable[SpecReport], listed: Iterable[ListedTest]) -> list[Result]:
    """Return a result for each test that ran; tests that are not listed have to pass."""
    reasons: Mapping[str, str] = {test.name: test.reason for test in listed}
    return [_result(report.name, report, reasons.get(report.name, "")) for report in reports]


def _result(name: str, report: SpecReport | None, reason: str) -> Result:
    if report is None:
        message = "did not run: e2e.test has no such test, or ended before it"
        return Result(name=name, family="did not run", passed=False, message=message, reason="")
    message = report.failure.message if report.failure else ""
    if report.passed and reason:
        message = f"it passed, but tests.yaml says that it cannot: {reason}"
    return Result(
        name=name,
        family=report.family,
        passed=report.passed,
        message=next(iter(message.strip().splitlines()), ""),
        reason=reason,
        seconds=report.run_time / 1e9,
    )


def _row(family: str, results: Sequence[Result]) -> tuple[str, str, str, str]:
    passed = sum(result.passed for result in results)
    reasons = [r.reason or "unexpected" for r in results if not r.passed]
    counted = [f"{reasons.count(reason)} x {reason}" for reason in sorted(set(reasons))]
    why = reasons[0] if len(reasons) == 1 else "; ".join(counted)
    return family, str(passed), str(len(results) - passed), why


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    family, passed, failed, why = row
    cells = [family.ljust(widths[0]), passed.rjust(widths[1]), failed.rjust(widths[2]), why]
    return f"| {' | '.join(cells)} |"
