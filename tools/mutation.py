"""Changes the decisions of podstatus in small ways and counts which changes the tests notice.

`make mutation` runs it. A sample of all mutants, chosen by a seed, is applied to a copy of src, one
at a time. Each runs the tests that mirror its package; a failure or a time-out kills it. Survivors
are written to a file: each is equivalent, or a missing test (docs/decisions/0046).
"""

import argparse
import ast
import difflib
import importlib.util
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import hypothesis.strategies  # noqa: F401 - for the children
import pytest

ROOT = Path(__file__).parents[1]
RECORDED = "tests/conformance/test_recorded.py"
PACKAGES = {
    "status/decide": ("tests/status/decide", "tests/status/test_decision_log.py", RECORDED),
    "status/sync/state": ("tests/status/sync/state", "tests/status/sync"),
    "pods": ("tests/pods", RECORDED),
    "workers/actions": ("tests/workers/actions",),
    "workers/lifecycle": ("tests/workers/lifecycle",),
}
"""Mutated packages and their tests, the fast ones first."""
AT_LEAST = 0.95
"""Minimum fraction of killed mutants."""

_TYPE_ONLY = {"frozen", "kw_only"}
"""Class keywords that mypy checks; at run time they forbid, and no decision depends on them."""
_OPTIONS = (
    *("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # hypothesis was imported before
)
_PASSED, _USAGE_ERROR = 0, 4
_EXTRA_SECONDS, _SLACK = 30.0, 5.0
"""A mutant may take so much longer, and so many times as long, as the unchanged source: the
machine is shared."""

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}

Edit = Callable[[], None]


class Mutant(NamedTuple):
    """One change: the edit with this number in a module."""

    package: str
    module: Path
    """Relative to src."""
    number: int
    line: int


class Verdict(NamedTuple):
    """What became of a mutant; `killed_by` is empty for a survivor."""

    mutant: Mutant
    killed_by: str
    difference: str


def edits(tree: ast.Module) -> list[tuple[int, Edit]]:
    """Return all edits of a tree, each with its line. An edit changes the tree in place."""
    return [
        (getattr(node, "lineno", 0), edit) for node in _mutable(tree) for edit in _edits_of(node)
    ]


def _mutable(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below that have a meaning at run time."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_ignored(child):
                yield child
                yield from _mutable(child)


def _is_ignored(node: ast.AST) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.BitOr())):
            return name[:1].isupper()  # an alias of a union type
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.keyword(arg=name):
            return name in _TYPE_ONLY
    return False


def _edits_of(node: ast.AST) -> Iterator[Edit]:
    yield from _operator_edits(node)
    yield from _condition_edits(node)
    yield from _removals(node)
    match node:
        case ast.Constant(value=value) if (other := _other_constant(value)) is not None:
            yield lambda: setattr(node, "value", other)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield lambda: setattr(node, "value", ast.Constant(None))


def _operator_edits(node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                if swap := _SWAPS.get(type(op)):
                    yield lambda index=index, swap=swap: ops.__setitem__(index, swap())  # type: ignore[misc]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op):
            if swap := _SWAPS.get(type(op)):
                yield lambda: setattr(node, "op", swap())


def _condition_edits(node: ast.AST) -> Iterator[Edit]:
    """Negate conditions; a comparison is left to the swap of its operator."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield lambda: setattr(node, "operand", _negated(operand))
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if not isinstance(test, ast.Compare | ast.UnaryOp):
                yield lambda: setattr(node, "test", _negated(test))
        case ast.comprehension(ifs=[*tests]):
            for index, test in enumerate(tests):
                if not isinstance(test, ast.Compare | ast.UnaryOp):
                    yield lambda index=index, test=test: node.ifs.__setitem__(index, _negated(test))  # type: ignore[misc]


def _removals(node: ast.AST) -> Iterator[Edit]:
    """Leave out a call that is a statement, a keyword argument, a case of a match."""
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield lambda: setattr(node, "value", ast.Constant(None))
        case ast.Call(keywords=keywords):
            for index, keyword in enumerate(keywords):
                if keyword.arg is not None:
                    yield lambda index=index: keywords.__delitem__(index)  # type: ignore[misc]
        case ast.Match(cases=cases) if len(cases) > 1:
            for index in range(len(cases)):
                yield lambda index=index: cases.__delitem__(index)  # type: ignore[misc]


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _other_constant(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"XX{value}"
    return None


def mutated(source: str, number: int) -> str:
    """Return the source with one edit; comments are lost."""
    tree = ast.parse(source)
    edits(tree)[number][1]()
    return ast.unparse(ast.fix_missing_locations(tree))


def difference(source: str, number: int) -> str:
    """Return the changed lines of a mutant."""
    before, after = ast.unparse(ast.parse(source)), mutated(source, number)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if line[:3] not in ("---", "+++") and line[:2] != "@@")


def all_mutants(src: Path) -> list[Mutant]:
    """Return the mutants of all packages, in a fixed order."""
    return [
        Mutant(package, path.relative_to(src), number, line)
        for package in PACKAGES
        for path in sorted((src / "podstatus" / package).rglob("*.py"))
        for number, (line, _) in enumerate(edits(ast.parse(path.read_text())))
    ]


class Bench:
    """A copy of src in which one module at a time is changed, and the tests that import it."""

    def __init__(self, folder: Path) -> None:
        self.src = folder / "src"
        shutil.copytree(ROOT / "src", self.src, ignore=shutil.ignore_patterns("__pycache__"))
        self._environment = {
            "PYTHONPATH": str(self.src),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
        }
        self._seconds: dict[str, float] = {}

    def measure(self) -> None:
        """Run all tests on the unchanged source, which have to pass; keep how long they take."""
        for tests in sorted({tests for stages in PACKAGES.values() for tests in stages}):
            began = time.monotonic()
            if self._test(tests, 3600) != _PASSED:
                sys.exit(f"mutation: {tests} fails without a mutant; run pytest {tests}")
            self._seconds[tests] = time.monotonic() - began
            print(f"{tests}: {self._seconds[tests]:.0f} s", flush=True)

    def judge(self, mutant: Mutant) -> Verdict:
        """Apply a mutant, run its tests, undo it."""
        path = self.src / mutant.module
        source = path.read_text()
        _write(path, mutated(source, mutant.number))
        try:
            killed_by = self._killed_by(mutant)
        finally:
            _write(path, source)
        return Verdict(mutant, killed_by, difference(source, mutant.number))

    def _killed_by(self, mutant: Mutant) -> str:
        stages = PACKAGES[mutant.package]
        own = Path(stages[0], f"test_{mutant.module.stem}.py")
        for tests in [str(own)] * (ROOT / own).exists() + list(stages):
            unchanged = self._seconds.get(tests, self._seconds[stages[0]])
            code = self._test(tests, _EXTRA_SECONDS + _SLACK * unchanged)
            if code == _USAGE_ERROR:  # the mutant cannot be imported by a conftest
                return f"{tests} (import)"
            if code != _PASSED:
                return tests if code is not None else f"{tests} (time-out)"
        return ""

    def _test(self, tests: str, seconds: float) -> int | None:
        """Run tests until one fails. Returns the exit code, None after a time-out."""
        running = multiprocessing.get_context("fork").Process(
            target=_run_pytest, args=(tests, self._environment)
        )
        running.start()
        running.join(seconds)
        if running.exitcode is None and running.pid is not None:
            os.killpg(running.pid, signal.SIGKILL)
            running.join()
            return None
        return running.exitcode


def _run_pytest(tests: str, environment: Mapping[str, str]) -> None:
    """Run in a child that has pytest and hypothesis imported, which saves half of the time."""
    os.setsid()
    os.environ |= environment
    sys.path.insert(0, environment["PYTHONPATH"])
    os.chdir(ROOT)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    sys.exit(pytest.main([*_OPTIONS, tests]))


def _write(path: Path, source: str) -> None:
    """Write a module. Its byte code goes: it is found by size and second of the last change."""
    path.write_text(source)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def report(verdicts: Sequence[Verdict], written: Path) -> float:
    """Print the score of each package, write the survivors, return the score of all."""
    for package in PACKAGES:
        of_package = [one for one in verdicts if one.mutant.package == package]
        killed = sum(bool(one.killed_by) for one in of_package)
        print(f"{package:<20}{killed:>5} of {len(of_package)} killed")
    survivors = [one for one in verdicts if not one.killed_by]
    written.parent.mkdir(exist_ok=True)
    written.write_text(
        "".join(
            f"src/{one.mutant.module}:{one.mutant.line} (edit {one.mutant.number})\n"
            f"{one.difference}\n\n"
            for one in survivors
        )
    )
    score = 1 - len(survivors) / len(verdicts)
    print(f"{score:.1%} of {len(verdicts)} killed, at least {AT_LEAST:.0%}; survivors: {written}")
    return score


def main() -> None:
    """Judge a sample; exit code 1 if too many survive."""
    parser = argparse.ArgumentParser(prog="make mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="number of mutants [300]")
    parser.add_argument("--seed", type=int, help="of the sample [any, and printed]")
    parser.add_argument("--survivors", type=Path, default=ROOT / "bench/results/survivors.txt")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="podstatus-mutation-") as folder:
        bench = Bench(Path(folder))
        population = all_mutants(bench.src)
        sample = random.Random(seed).sample(population, min(options.sample, len(population)))
        print(f"mutation: seed {seed}, {len(sample)} of {len(population)} mutants", flush=True)
        bench.measure()
        verdicts = []
        for number, mutant in enumerate(sample, 1):
            verdict = bench.judge(mutant)
            verdicts.append(verdict)
            fate = f"killed by {verdict.killed_by}" if verdict.killed_by else "SURVIVED"
            print(f"{number}/{len(sample)} {mutant.module}:{mutant.line} {fate}", flush=True)
            if not verdict.killed_by:
                print(verdict.difference, flush=True)
        sys.exit(report(verdicts, options.survivors) < AT_LEAST)


if __name__ == "__main__":
    main()
