"""Options that commands share, and options made of the fields of a Struct."""

import inspect
import os
import shlex
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from podstatus.cli.completion import complete_pod
from podstatus.cli.errors import usage_error
from podstatus.kube.scalars.duration import DurationError, parse_duration

StopAtEofOption = Annotated[
    bool,
    typer.Option(
        "--stop-at-eof",
        hidden=True,
        help="Stop when standard input is closed, for example by the exit of the parent process.",
    ),
]

POD_KINDS = ("pods", "pod", "po")
NODE_KINDS = ("nodes", "node", "no")
"""The names of the types, as in kubectl."""


class OutputFormat(StrEnum):
    """The output formats of objects."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class DataSource(StrEnum):
    """The sources of objects: API server, agent, or automatic."""

    AUTO = "auto"
    SERVER = "server"
    AGENT = "agent"


RootDirOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Root directory of the agent. Default: $PODSTATUS_ROOT_DIR, else ./.podstatus if an "
        "agent runs there, else the default of podstatus run.",
    ),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace to use. Default: default."),
]
AllNamespacesOption = Annotated[
    bool,
    typer.Option("--all-namespaces", "-A", help="Select the objects of all namespaces."),
]
OutputOption = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="|".join(OutputFormat), help="Output format."),
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Path to the kubeconfig of the cluster to use instead of the agent's API server.",
    ),
]
FromOption = Annotated[
    DataSource,
    typer.Option(
        "--from",
        metavar="auto|server|agent",
        help="Where to read the objects from. Default: auto, which means the API server, or the "
        "agent if the API server is unreachable.",
        show_default=False,
    ),
]
SelectorOption = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="SELECTOR",
        help="Select objects by their labels, such as app=web,tier in (front,back),!old.",
    ),
]
FieldSelectorOption = Annotated[
    str,
    typer.Option(
        metavar="SELECTOR", help="Select objects by their fields, such as status.phase!=Running."
    ),
]
WaitTimeoutOption = Annotated[
    str,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="Maximum time that the command waits, such as 5m. Default: 0, no limit.",
        show_default=False,
    ),
]


def parse_pod_name(text: str) -> str:
    """Return the name of `pod/NAME`, which kubectl accepts, too; exit with code 2 for others."""
    kind, slash, name = text.partition("/")
    if slash and kind.lower() not in POD_KINDS:
        usage_error(f"{text!r} is not a pod; write it as in {name} or pod/{name}")
    return name if slash else text


PodArgument = Annotated[
    str,
    typer.Argument(
        metavar="POD",
        help="Name of the pod.",
        autocompletion=complete_pod,
        callback=parse_pod_name,
    ),
]


class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an API server."""

    root_dir: RootDirOption = None
    kubeconfig: KubeconfigOption = None
    namespace: NamespaceOption = None


class SourceOptions(ClusterOptions, frozen=True, kw_only=True):
    """The options of the source of objects: an API server, or the agent."""

    source: FromOption = DataSource.AUTO


def within(lowest: int, highest: int | None = None) -> Callable[[int], int]:
    """Return a callback that checks a number; unlike `min` and `max`, help does not show it."""

    def check(value: int) -> int:
        if value < lowest:
            raise typer.BadParameter(f"{value} is less than {lowest}.")
        if highest is not None and value > highest:
            raise typer.BadParameter(f"{value} is greater than {highest}.")
        return value

    return check


def check_label_selector(text: str) -> None:
    """Exit with code 2 if the text is not a label selector."""
    if not text:
        return
    from podstatus.kube.label_selector import LabelSelectorError, parse_label_selector

    try:
        parse_label_selector(text)
    except LabelSelectorError as error:
        usage_error(f"--selector: {error}; write it as in app=web,tier in (front,back),!old")


def parse_output(
    text: str | None, words: str, root_dir: Path | None, kubeconfig: Path | None = None
) -> OutputFormat | None:
    """Return the format of `--output`; exit with code 2 if there is none of this name.

    `words`: what follows kubectl in the command that has more formats.
    """
    if text is not None and text not in list(OutputFormat):
        from podstatus.cli.client.running_agent import kubectl_command

        more = f"{words} -o {shlex.quote(text)}"
        kubectl = kubectl_command(more, root_dir, os.environ, kubeconfig)
        formats = ", ".join(OutputFormat)
        usage_error(f"--output: no such format {text!r}; use {formats}; for others: {kubectl}")
    return None if text is None else OutputFormat(text)


def parse_names(kind: str, names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the type and the names of `TYPE NAME...` or `TYPE/NAME...`, as in kubectl.

    Exits with code 2 for names of another type.
    """
    kind, slash, first = kind.partition("/")
    found = [first] if slash else []
    for text in names:
        prefix, slash, name = text.partition("/")
        if slash and _singular(prefix) != _singular(kind):
            usage_error(f"{text!r} is not of type {kind}; pass objects of one type")
        found.append(name if slash else text)
    if "" in found:
        usage_error(f"the name of an object is missing; write it as in {kind}/NAME")
    return kind, found


def _singular(kind: str) -> str:
    short = {"po": "pod", "no": "node", "ev": "event"}
    return short.get(kind.lower(), kind.lower().removesuffix("s"))


def parse_timeout(text: str) -> float:
    """Return the seconds of `--timeout`, 0 for no limit; exit with code 2 if it is invalid."""
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        usage_error(f"--timeout: {error}")
    if seconds < 0:
        usage_error("--timeout must be 0 or more, such as 5m")
    return seconds


def parse_positive_duration(text: str, flag: str) -> float:
    """Return the seconds of a duration; exit with code 2 if it is invalid or not positive."""
    try:
        seconds = parse_duration(text)
    except DurationError as error:
        usage_error(f"{flag}: {error}")
    if seconds <= 0:
        usage_error(f"{flag} must be greater than 0, such as 5m")
    return seconds


def with_bundle(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with an option for each field of its parameter `options`, a Struct."""
    bundle = inspect.signature(command, eval_str=True).parameters["options"].annotation
    fields = [*inspect.signature(bundle, eval_str=True).parameters.values()]
    return replace_parameter(command, "options", fields, bundle)


def replace_parameter(
    command: Callable[..., None],
    name: str,
    parameters: Sequence[inspect.Parameter],
    build: Callable[..., object],
) -> Callable[..., None]:
    """Return `command` with `parameters` in place of its parameter `name`.

    `build` makes the value of that parameter of theirs.
    """

    def with_options(**options: Any) -> None:
        value = build(**{it.name: options.pop(it.name) for it in parameters})
        command(**{name: value}, **options)

    own = inspect.signature(command, eval_str=True).parameters
    merged = [it for key, old in own.items() for it in (parameters if key == name else [old])]
    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    with_options.__annotations__ = {it.name: it.annotation for it in merged}
    with_options.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
    return with_options
