"""What `make mutation` changes in a source, and what it leaves alone."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("mutation")


def mutants(tool: ModuleType, source: str) -> list[str]:
    return [tool.mutated(source, number) for number in range(len(tool.edits(ast.parse(source))))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("x = a is None", ["x = a is not None"]),
        ("x = a in b", ["x = a not in b"]),
        ("x = a and b", ["x = a or b"]),
        ("x = a + b", ["x = a - b"]),
        ("x += y", ["x -= y"]),
        ("x = not a", ["x = not not a"]),
        ("x = True", ["x = False"]),
        ("x = 1", ["x = 2"]),
        ("x = 'Pending'", ["x = 'XXPending'"]),
        ("if a:\n    b", ["if not a:\n    b"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if not a]"]),
        ("a.add(b)", ["None"]),
        ("x = f(a, b=c)", ["x = f(a)"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        (
            "match a:\n    case b.C():\n        d\n    case _:\n        e",
            ["match a:\n    case _:\n        e", "match a:\n    case b.C():\n        d"],
        ),
    ],
)
def test_each_decision_is_changed(tool: ModuleType, source: str, expected: list[str]) -> None:
    assert mutants(tool, source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        'x: int\n"""The docstring of a field."""',
        "def f(a: 'int | None') -> 'int | None':\n    pass",
        "class A(Struct, frozen=True, kw_only=True):\n    pass",
        "Outcome = Refused | Accepted",
        "__all__ = ['a']",
        "if TYPE_CHECKING:\n    x = 1",
        "from a import b",
        "@cache(1)\ndef f():\n    pass",
    ],
)
def test_what_has_no_meaning_at_run_time_is_left_alone(tool: ModuleType, source: str) -> None:
    assert mutants(tool, source) == []


def test_every_mutated_package_and_its_tests_exist(tool: ModuleType) -> None:
    src = tool.ROOT / "src"
    assert {mutant.package for mutant in tool.all_mutants(src)} == tool.PACKAGES.keys()
    tests = {name for stages in tool.PACKAGES.values() for name in stages}
    assert [name for name in tests if not (tool.ROOT / name).exists()] == []


def test_a_survivor_is_shown_by_its_lines(tool: ModuleType) -> None:
    source = "def f(a):  # why\n    b(a)\n    return a == 1\n"
    assert tool.difference(source, 2) == "-    return a == 1\n+    return a != 1"
