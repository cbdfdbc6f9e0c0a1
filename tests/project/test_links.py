"""Every reference to a page leads somewhere, and every page can be found from an index."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = ("docs", "src", "tests", "examples", "tools", "bench")
PAGES = sorted([*ROOT.glob("*.md"), *(it for top in FOLDERS for it in (ROOT / top).rglob("*.md"))])
CODE = [
    path
    for top in FOLDERS
    for path in (ROOT / top).rglob("*")
    if path.suffix in {".py", ".yaml", ".mod"} and path != Path(__file__)
]
DECISIONS = re.findall(
    r"^\| (?:\[)?(\d{4})(?:\]\((.+?)\))? \|.*\| (.+) \|$",
    (DOCS / "decisions" / "README.md").read_text(),
    re.MULTILINE,
)
"""Number, file if there is one, status."""
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def links(page: Path) -> set[str]:
    return set(LINK.findall(CODE_BLOCK.sub("", page.read_text())))


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", CODE_BLOCK.sub("", page.read_text()), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", LINK.sub(_text, heading).lower()).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


def _text(link: re.Match[str]) -> str:
    return link[0].partition("](")[0]


def broken_links(page: Path) -> list[str]:
    return sorted(link for link in links(page) if not _leads_somewhere(page, link))


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = Path(os.path.normpath(page.parent / path)) if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# The `a` of [b](page.md)\n[x](no.md) [y](#no) [z](#the-a-of-b) [](page.md)\n")
    assert broken_links(page) == ["#no", "no.md"]


def test_pages_that_code_and_pages_name_exist() -> None:
    named = {
        (str(path.relative_to(ROOT)), name)
        for path in [*CODE, *PAGES]
        for name in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text())
    }
    assert len(named) > 30
    assert sorted(it for it in named if not (ROOT / it[1]).exists()) == []


def test_decisions_that_code_and_pages_refer_to_exist() -> None:
    numbers = {number for number, _, _ in DECISIONS}
    named = {
        (str(path.relative_to(ROOT)), number)
        for path in [*CODE, *PAGES]
        for number in re.findall(r"\bdecisions?[ /](\d{4})\b", path.read_text())
    }
    assert len(named) > 30
    assert sorted(it for it in named if it[1] not in numbers) == []


def test_the_index_lists_every_page_once_by_its_title() -> None:
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {"index.md"}
    index = (DOCS / "index.md").read_text()
    entries = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\): ", index, re.MULTILINE)
    listed = [page for _, page in entries]
    titles = [(DOCS / page).read_text().partition("\n")[0] for page in listed]
    assert titles == [f"# {title}" for title, _ in entries]
    decisions = {page for page in pages if page.startswith("decisions/0")}
    assert sorted(listed) == sorted(pages - decisions)


def test_the_index_of_decisions_has_each_with_its_status() -> None:
    files = sorted(path.name for path in (DOCS / "decisions").glob("0*.md"))
    assert [file for _, file, _ in DECISIONS if file] == files
    assert [int(number) for number, _, _ in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    known = r"accepted|accepted; extended by \d{4}.*|superseded by .*|moved to .*|not used"
    assert [it for it in DECISIONS if not re.fullmatch(known, it[2])] == []
