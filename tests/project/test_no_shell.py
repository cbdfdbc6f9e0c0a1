"""No shell is ever between us and a program: nobody's words are taken for a line of it."""

import ast
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
SHELLS = {"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell"}
PROGRAMS = {"run", "Popen", "call", "check_call", "check_output"}
MAY_START_ONE = re.compile("|".join(["subprocess", "shell", *SHELLS, r"""sh["']"""]))
"""What is written in every module that starts a shell; the others need not be parsed."""


def shells_in(source: str) -> list[int]:
    """The lines in which a shell would be started."""
    if not MAY_START_ONE.search(source):
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if _is_shell(call)]


def _is_shell(call: ast.Call) -> bool:
    name, module = _name(call.func)
    if any(keyword.arg == "shell" for keyword in call.keywords):
        return True
    if name in SHELLS:
        return module != "platform"
    if module != "subprocess" or name not in PROGRAMS:
        return _is_sh(call.args)
    return not call.args or isinstance(call.args[0], (ast.Constant, ast.JoinedStr, ast.BinOp))


def _is_sh(arguments: list[ast.expr]) -> bool:
    """Whether there is a list that begins with the name of a shell."""
    return any(
        isinstance(argument, (ast.List, ast.Tuple))
        and bool(argument.elts)
        and isinstance(first := argument.elts[0], ast.Constant)
        and str(first.value).rpartition("/")[2] in ("sh", "bash", "dash")
        for argument in arguments
    )


def _name(called: ast.expr) -> tuple[str, str]:
    """What is called, and in which module, as far as that can be seen."""
    if isinstance(called, ast.Attribute):
        module = called.value.id if isinstance(called.value, ast.Name) else ""
        return called.attr, module
    return (called.id, "") if isinstance(called, ast.Name) else ("", "")


def test_no_shell_anywhere() -> None:
    found = {
        str(path.relative_to(SOURCES)): lines
        for path in SOURCES.rglob("*.py")
        if (lines := shells_in(path.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(x, shell=True)",
        "os.system(x)",
        "os.popen('ls')",
        "subprocess.run('ls -l')",
        "subprocess.Popen(f'ls {x}')",
        "subprocess.check_output('ls ' + x)",
        "asyncio.create_subprocess_shell(x)",
        "subprocess.getoutput(x)",
        "spawn(['/bin/sh', '-c', x])",
    ],
)
def test_a_shell_would_be_found(line: str) -> None:
    assert shells_in(line) == [1]


@pytest.mark.parametrize(
    "line", ["subprocess.run([program, x])", "os.execve(name, argv, env)", "platform.system()"]
)
def test_programs_are_no_shells(line: str) -> None:
    assert shells_in(line) == []
