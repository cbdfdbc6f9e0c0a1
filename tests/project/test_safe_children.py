"""Every Python that is started leaves the current folder out; every program is looked up safely."""

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
SAFE = {"-P", "-I"}
LOOKS_UP = {"podstatus/base/programs.py", "podstatus/client/auth/exec_plugin/run_plugin.py"}
"""The latter refuses a program that was found by a relative folder, as client-go does."""


def unsafe_commands(source: str) -> list[int]:
    """The lines of commands that begin with our interpreter and let the folder in."""
    if "executable" not in source:
        return []
    found = ast.walk(ast.parse(source))
    return [node.lineno for node in found if isinstance(node, ast.List | ast.Tuple) and _is(node)]


def _is(command: ast.List | ast.Tuple) -> bool:
    words = [ast.unparse(word) for word in command.elts]
    options = {word.value for word in command.elts if isinstance(word, ast.Constant)}
    return "sys.executable" in words and len(words) > 1 and not options & SAFE


def look_ups(source: str) -> list[int]:
    """The lines that look a program up on a path as it is."""
    if "which(" not in source:
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if ast.unparse(call.func) in ("which", "shutil.which")]


def test_no_python_is_started_with_the_current_folder_on_its_path() -> None:
    found = {
        str(path.relative_to(SOURCES)): lines
        for path in SOURCES.rglob("*.py")
        if (lines := unsafe_commands(path.read_text()))
    }
    assert found == {}


def test_programs_are_looked_up_in_one_place() -> None:
    found = {str(p.relative_to(SOURCES)) for p in SOURCES.rglob("*.py") if look_ups(p.read_text())}
    assert found == LOOKS_UP


@pytest.mark.parametrize(
    ("line", "is_unsafe"),
    [
        ("x = [sys.executable, '-m', 'a']", True),
        ("x = (sys.executable, 'a.py')", True),
        ("x = [sys.executable, '-P', '-m', 'a']", False),
        ("x = [sys.executable, '-I', '-S', 'a.py']", False),
        ("x = sys.executable", False),
    ],
)
def test_an_unsafe_command_would_be_found(line: str, is_unsafe: bool) -> None:
    assert bool(unsafe_commands(line)) is is_unsafe
