"""Fills the tables of the reference pages from the declarations in the code.

`make docs` writes them, `make docs-check` (a part of `make lint`) fails if one differs. A table
stands between `<!-- generated: NAME -->` and `<!-- end -->`; the text around it is written by hand.
A command without a section in docs/reference/cli.md gets one.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from podstatus.agent.settings.model import SETTINGS
from podstatus.agent.settings.schema.setting import Setting
from podstatus.alerts.rules.action_kinds import ACTIONS, ActionKind, ActionOption
from podstatus.alerts.rules.fact_variables import (
    CONTAINER_FACTS,
    NODE_FACTS,
    POD_FACTS,
    SYNC_FACTS,
    Fact,
)
from podstatus.cli.register_commands import LazyCommand, app
from podstatus.events import reasons
from podstatus.observe.metrics import cadvisor_catalog, kubelet_catalog, podstatus_catalog
from podstatus.observe.metrics.model import Metric

DOCS = Path(__file__).parents[1] / "docs"
CLI_PAGE = "reference/cli.md"
Regions = dict[str, str]
"""Name -> Markdown."""

_BEGIN, _END = "<!-- generated: {} -->", "<!-- end -->"
_REGION = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->\n)", re.DOTALL)
_REASON_GROUP = re.compile(r"^# ([^\n]+)\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)
_PAGE_NAME = re.compile(r"\bdocs/([\w/-]+/)([\w-]+)\.md")
_METRIC_PREFIXES = {
    "metrics of the kubelet": ("kubelet_", "rest_client_"),
    "metrics of podstatus": ("podstatus_", "ALERTS", "leader_election_"),
    "metrics of the process": ("process_",),
    "metrics of probes": ("prober_",),
    "metrics of resources": ("node_", "container_", "pod_", "resource_"),
    "metrics of health checks": ("kubernetes_",),
}


class PageError(Exception):
    """A page does not have the regions that the code has a table for."""


def table(header: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; `|` in cells is escaped."""
    lines = (" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows)
    separator = "|" + "---|" * (header.count("|") - 1)
    return "\n".join([header, separator, *(f"| {line} |".replace("|  |", "| |") for line in lines)])


def code(names: Iterable[str], separator: str = ", ") -> str:
    return separator.join(f"`{name}`" for name in names)


def settings_regions() -> Regions:
    groups: dict[str, list[Setting]] = {}
    for setting in SETTINGS:
        groups.setdefault(setting.group, []).append(setting)
    header = "| flag | variable | field | default | |"
    return {
        f"settings {group}": table(header, map(_setting_row, settings))
        for group, settings in groups.items()
    }


def _setting_row(setting: Setting) -> list[str]:
    flags = [setting.option, *([f"-{setting.short}"] if setting.short else [])]
    field = f"`{setting.field}`" if setting.field else "-"
    default = setting.default_help or (f"`{setting.default}`" if setting.default else "none")
    return [code(flags), f"`{setting.variable}`", field, default, setting.help]


def metrics_regions() -> Regions:
    """Raises PageError if a metric belongs to no page."""
    declared = [
        metric
        for catalog in (kubelet_catalog, podstatus_catalog)
        for metric in vars(catalog).values()
        if isinstance(metric, Metric)
    ]
    groups = {
        group: [metric for metric in declared if metric.name.startswith(prefixes)]
        for group, prefixes in _METRIC_PREFIXES.items()
    }
    listed = {metric.name for group in groups.values() for metric in group}
    if unlisted := [metric.name for metric in declared if metric.name not in listed]:
        raise PageError(f"no table of docs/reference/metrics.md takes {', '.join(unlisted)}")
    groups["metrics of cAdvisor"] = list(cadvisor_catalog.ALL)
    header = "| metric | type | labels | meaning |"
    return {group: table(header, map(_metric_row, metrics)) for group, metrics in groups.items()}


def _metric_row(metric: Metric) -> list[str]:
    return [f"`{metric.name}`", metric.kind.value, code(metric.labels, " "), metric.help]


def alerting_regions() -> Regions:
    facts = {"pods": POD_FACTS, "containers": CONTAINER_FACTS, "nodes": NODE_FACTS}
    regions = {f"facts about {name}": _facts(listed) for name, listed in facts.items()}
    rows = [row for kind in ACTIONS.values() for row in _action_rows(kind)]
    return {
        **regions,
        "facts about the sync": _facts(SYNC_FACTS),
        "actions": table("| action | option | |", rows),
    }


def _facts(facts: Iterable[Fact]) -> str:
    rows = ([f"`{fact.name}`", fact.kind, fact.meaning] for fact in facts)
    return table("| fact | type | |", rows)


def _action_rows(kind: ActionKind) -> Iterator[list[str]]:
    only = " Only with scope `pod`." if kind.scopes == {"pod"} else ""
    yield [f"`{kind.name}`{' ✎' if kind.is_remediation else ''}", "", f"{kind.meaning}{only}"]
    for option in kind.options:
        yield ["", f"`{option.name}`", _option_meaning(option)]


def _option_meaning(option: ActionOption) -> str:
    default = f" Default: `{option.default}`." if option.default else ""
    return f"{option.meaning}{' Required.' if option.required else default}"


def events_regions() -> Regions:
    """Raises PageError if the docstring of a reason is incomplete."""
    source = Path(reasons.__file__).read_text()
    regions = {}
    for title, constants in _REASON_GROUP.findall(source):
        rows = map(_event_row, _documented(constants))
        regions[f"events: {title}"] = table("| reason | type | text | when |", rows)
    return regions


def _documented(source: str) -> Iterator[tuple[str, str]]:
    """Yield the value of each constant with the string after it."""
    for statement, after in pairwise([*ast.parse(source).body, ast.Pass()]):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Constant):
            text = after.value if isinstance(after, ast.Expr) else None
            described = str(text.value) if isinstance(text, ast.Constant) else ""
            yield str(statement.value.value), described


def _event_row(documented: tuple[str, str]) -> list[str]:
    reason, text = documented
    message, _, when = (" ".join(it.split()) for it in text.partition("\n\n"))
    type_, _, message = message.partition(": ")
    if not (type_ and message and when):
        raise PageError(f'the docstring of {reason} is not "TYPE: MESSAGE", an empty line, WHEN')
    return [f"`{reason}`", type_, message, _PAGE_NAME.sub(_link, when)]


def _link(page: re.Match[str]) -> str:
    return f"[{page[2].replace('-', ' ')}](../{page[1]}{page[2]}.md)"


def cli_commands() -> dict[str, Any]:
    """Return all commands by name; those of a group have its name in front."""
    return dict(_commands_of(typer.main.get_command(app), ""))


def _commands_of(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    for name, listed in group.commands.items():
        command = listed.load() if isinstance(listed, LazyCommand) else listed
        if hasattr(command, "commands"):
            yield from _commands_of(command, f"{name} ")
        else:
            yield f"{before}{name}", command


def cli_regions(commands: Mapping[str, Any]) -> Regions:
    return {
        f"options of {name}": table("| | |", rows)
        for name, command in commands.items()
        if (rows := list(_parameter_rows(name, command)))
    }


def _parameter_rows(name: str, command: Any) -> Iterator[list[str]]:
    settings = {setting.option for setting in SETTINGS} if name in ("run", "doctor") else set()
    for parameter in command.params:
        if not getattr(parameter, "hidden", False) and parameter.opts[0] not in settings:
            yield [_parameter_names(parameter), parameter.help]


def _parameter_names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`"
    names = code((*parameter.opts, *parameter.secondary_opts))
    return f"{names} {parameter.metavar}" if parameter.metavar else names


def add_cli_sections(page: str, commands: Mapping[str, Any], regions: Regions) -> str:
    """Add the missing sections, and the missing regions in sections. Raises PageError."""
    title, *parts = re.split(r"^(?=## podstatus )", page, flags=re.MULTILINE)
    sections = {part.partition("\n")[0].removeprefix("## podstatus "): part for part in parts}
    if unknown := sections.keys() - commands.keys():
        raise PageError(f"{CLI_PAGE} has a section of {', '.join(sorted(unknown))}")
    for name, command in commands.items():
        new = f"## podstatus {name}\n\n{command.help}\n\nExit codes: 0; 1 for a failure.\n\n"
        sections[name] = _with_region(sections.get(name, new), f"options of {name}", regions)
    return (title + "".join(sections[name] for name in commands)).rstrip("\n") + "\n"


def _with_region(section: str, name: str, regions: Regions) -> str:
    begin = _BEGIN.format(name)
    if name not in regions or begin in section:
        return section
    by_hand = re.search(r"^\| \| \|\n(\|.*\n)+|(?=^Exit code)|\Z", section, re.MULTILINE)
    if by_hand is None:
        raise PageError(f"{name}: there is no place for its table")
    gap = "" if by_hand[0] else "\n"
    return f"{section[: by_hand.start()]}{begin}\n{_END}\n{gap}{section[by_hand.end() :]}"


def fill(path: str, page: str, regions: Regions) -> str:
    """Return the page with its regions filled. Raises PageError if it has others."""
    names = re.findall(r"<!-- generated: (.+?) -->", page)
    if sorted(names) != sorted(regions):
        missing = sorted(regions.keys() - set(names))
        unknown = sorted(set(names) - regions.keys())
        raise PageError(f"docs/{path}: missing regions {missing}, unknown regions {unknown}")
    return _REGION.sub(lambda match: f"{match[1]}{regions[match[2]]}\n{match[3]}", page)


def generate(docs: Path) -> dict[Path, str]:
    """Return the text of all pages with tables. Raises PageError."""
    commands = cli_commands()
    pages = {
        "reference/settings.md": settings_regions(),
        "reference/metrics.md": metrics_regions(),
        "reference/alerting.md": alerting_regions(),
        "reference/events.md": events_regions(),
        CLI_PAGE: cli_regions(commands),
    }
    texts = {path: (docs / path).read_text() for path in pages}
    texts[CLI_PAGE] = add_cli_sections(texts[CLI_PAGE], commands, pages[CLI_PAGE])
    return {docs / path: fill(path, texts[path], regions) for path, regions in pages.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one differs")
    check = parser.parse_args().check
    try:
        pages = generate(DOCS)
    except PageError as error:
        print(error, file=sys.stderr)
        return 1
    different = [path for path, text in pages.items() if path.read_text() != text]
    for path in different:
        print(f"{path.relative_to(DOCS.parent)}: {'run make docs' if check else 'written'}")
        if not check:
            path.write_text(pages[path])
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
