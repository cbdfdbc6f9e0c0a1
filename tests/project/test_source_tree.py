"""The vocabulary and the layout of the tree (STYLE: words, packages, docstrings)."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "podstatus"
BANNED = re.compile(
    r"""(?<![a-z])(told|whoever|somebody|anew)(?![a-z])  # also as a part of an identifier
      | (?<![a-z"'`])nobody(?![a-z"'`])(?!:)             # but "nobody" is a Unix user
      | (?-i:\b(MOST|LONGEST)_)                           # bounds are MAX_…""",
    re.IGNORECASE | re.VERBOSE,
)
TEXT = {".py", ".md", ".html", ".js", ".css", ".json", ".yaml", ".toml", ".txt"}
MAX_MODULES = 25
MIN_DOCSTRING_WORDS = 5


def written_files() -> list[Path]:
    pages = [*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"]
    found = (path for top in (SOURCE, ROOT / "docs", ROOT / "examples") for path in top.rglob("*"))
    return sorted([*pages, *(path for path in found if path.suffix in TEXT)])


def test_no_banned_word_is_written() -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in written_files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if BANNED.search(line)
    ]
    assert lines == []


@pytest.mark.parametrize(
    "text",
    ["it is told", "_told_at = 1", "Whoever asks", "begin anew", "nobody knows", "MOST_PODS = 3"],
)
def test_banned_words_are_found(text: str) -> None:
    assert BANNED.search(text)


@pytest.mark.parametrize(
    "text", ['user "nobody"', "`nobody`", "nobody:x:65534:", "renewal", "most_common"]
)
def test_other_words_are_left_alone(text: str) -> None:
    assert not BANNED.search(text)


@pytest.mark.parametrize("top", ["src", "tests"])
def test_no_folder_has_too_many_modules(top: str) -> None:
    sizes: dict[str, int] = defaultdict(int)
    for path in (ROOT / top).rglob("*.py"):
        sizes[str(path.parent.relative_to(ROOT))] += path.name != "__init__.py"
    assert {folder: size for folder, size in sizes.items() if size > MAX_MODULES} == {}


def test_no_test_module_imports_another() -> None:
    imports = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.module}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and re.match(r"tests\..*\btest_", node.module or "")
    ]
    assert imports == []


def test_a_public_class_name_is_used_once() -> None:
    places = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
            places[name].append(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_docstring_says_more_than_the_name() -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    short = [
        f"{path.relative_to(SOURCE)}:{node.body[0].lineno}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, documented)
        and (text := ast.get_docstring(node)) is not None
        and len(text.split()) < MIN_DOCSTRING_WORDS
        and not text.startswith("Upstream: ")
    ]
    assert short == []


def test_every_package_says_what_belongs_there_and_where_its_tests_are() -> None:
    silent = [
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("__init__.py"))
        if path.parent != SOURCE
        and not re.search(
            r"[Tt]ests(: | are in |/)", ast.get_docstring(ast.parse(path.read_text())) or ""
        )
    ]
    assert silent == []


def test_the_architecture_page_lists_the_packages() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE
    )
    listed = {package: set(re.findall(r"`(\w+)`", cell)) for package, cell in rows}
    assert listed == {path.name: _packages(path) for path in SOURCE.iterdir() if _is_package(path)}


def _packages(path: Path) -> set[str]:
    return {child.name for child in path.iterdir() if _is_package(child)}


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").exists()
