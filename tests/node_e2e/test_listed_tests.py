"""tests.yaml is complete and consistent."""

import json
from pathlib import Path

import pytest

from tests.node_e2e.listed_tests import PARALLEL, by_queue, load_listed_tests

MIN_TESTS = 149
NAMED = (
    "environment variables for services",
    "remote command execution over websockets",
    "TerminationMessagePolicy FallbackToLogsOnError",
    "PreStop should call prestop",
)
"""Families that the agent once failed; CI runs them."""


def write(path: Path, *groups: dict[str, str]) -> Path:
    path.write_text(json.dumps(groups))
    return path


def test_the_list_is_complete() -> None:
    assert len(load_listed_tests()) >= MIN_TESTS


@pytest.mark.parametrize("words", NAMED)
def test_ci_runs_the_named_families(words: str) -> None:
    tests = [test for test in load_listed_tests() if words in test.name]
    assert tests
    assert all(not test.reason and not test.is_slow for test in tests)


def test_tests_are_grouped_by_queue(tmp_path: Path) -> None:
    path = write(tmp_path / "tests.yaml", {"tests": "a\nb"}, {"queue": "port 80", "tests": "c"})
    assert by_queue(load_listed_tests(path)) == {PARALLEL: ["a", "b"], "port 80": ["c"]}


def test_a_test_is_listed_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"listed twice: b$"):
        load_listed_tests(write(tmp_path / "tests.yaml", {"tests": "a\nb"}, {"tests": "b"}))
