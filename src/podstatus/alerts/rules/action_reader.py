"""Read the actions of a rule, each checked against the table of kinds and their options."""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import yaml

from podstatus.alerts.actions.critical_pods import pod_names_error
from podstatus.alerts.model import Action, Scope
from podstatus.alerts.rules.action_kinds import (
    ACTIONS,
    SEND_TIMEOUT_SECONDS,
    ActionKind,
    ActionOption,
    OptionKind,
)
from podstatus.alerts.rules.durations import RuleDurationError, parse_duration
from podstatus.alerts.rules.yaml_reader import YamlReader
from podstatus.kube.validation.label_names import label_value_errors

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIXED_NAME = re.compile(
    r"(?:alerts\.podstatus\.dev/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?", re.ASCII
)
_COUNT = re.compile(r"[0-9]{1,9}")


def read_action(reader: YamlReader, node: yaml.Node, scope: Scope) -> Action | None:
    """An action, `{webhook: {url: …}}`, or its name alone if it needs no options."""
    if isinstance(node, yaml.ScalarNode):
        kinds: Mapping[str, yaml.Node | None] = {str(node.value): None}
    else:
        kinds = reader.mapping(node, "an action")
    if len(kinds) != 1:
        reader.add_error(node, "an action is the name of its kind and its options: {event: {}}")
        return None
    [(name, options)] = kinds.items()
    kind = ACTIONS.get(name)
    if kind is None:
        reader.add_error(node, f"there is no action {name}, but {', '.join(ACTIONS)}")
        return None
    if scope not in kind.scopes:
        reader.add_error(node, f"{name} is for rules with scope {' or '.join(sorted(kind.scopes))}")
    return Action(
        kind=name, options=_options(reader, kind, node, options), place=reader.location(node)
    )


def _options(
    reader: YamlReader, kind: ActionKind, action: yaml.Node, node: yaml.Node | None
) -> dict[str, str]:
    known = {option.name: option for option in kind.options}
    if isinstance(node, yaml.ScalarNode) and node.value != "":
        # It is not shown: it may be an address with a secret in it.
        reader.add_error(node, f"{kind.name} must be a mapping of its options, not a text")
        return {}
    said = reader.mapping(node, kind.name, known) if isinstance(node, yaml.CollectionNode) else {}
    for option in kind.options:
        if option.required and option.name not in said:
            reader.add_error(action, f"{kind.name} needs {option.name}: {option.meaning.lower()}")
    read = {name: _option(reader, kind, known[name], value) for name, value in said.items()}
    if "tokenFile" in read and "@" in urlsplit(read.get("url") or "").netloc:
        reader.add_error(said["url"], f"{kind.name}: a url with a user goes without tokenFile")
    return {name: text for name, text in read.items() if text is not None}


def _option(
    reader: YamlReader, kind: ActionKind, option: ActionOption, node: yaml.Node
) -> str | None:
    what = f"{kind.name}: {option.name}"
    text = reader.text(node, what)
    if text is None:
        return None
    problem = _CHECKS[option.kind](text)
    if problem:
        # An address often holds a secret, also one that is wrong.
        shown = "" if option.kind == "url" else f", not {text!r}"
        reader.add_error(node, f"{what} {problem}{shown}")
    return None if problem else text


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    return "" if right else "must be an address such as https://example.org/alerts"


def _check_duration(text: str) -> str:
    try:
        return "" if parse_duration(text) > 0 else "must be more than 0"
    except RuleDurationError:
        return "must be a length of time such as 30s or 2m"


def _check_timeout(text: str) -> str:
    problem = _check_duration(text)
    if problem or parse_duration(text) <= SEND_TIMEOUT_SECONDS:
        return problem
    return f"must be at most {SEND_TIMEOUT_SECONDS:g}s"


_CHECKS: Mapping[OptionKind, Callable[[str], str]] = {
    "url": _url,
    "file": lambda text: "" if text else "must be the path of a file",
    "span": _check_duration,
    "try": _check_timeout,
    "count": lambda text: "" if _COUNT.fullmatch(text) else "must be a number, 0 or more",
    "name": lambda text: (
        "" if _NAME.fullmatch(text) else "must be a name of letters, digits, -, _ and ."
    ),
    "own": lambda text: (
        ""
        if _PREFIXED_NAME.fullmatch(text)
        else "must be a name of letters, digits, -, _ and ., which is put below "
        "alerts.podstatus.dev/"
    ),
    "value": lambda text: (
        "must be at most 63 letters, digits, -, _ and ., with a letter or digit at both ends"
        if label_value_errors(text)
        else ""
    ),
    "effect": lambda text: "" if text in EFFECTS else f"must be one of {', '.join(EFFECTS)}",
    "pods": pod_names_error,
}
"""What is wrong with a text of each kind; empty: nothing."""
