"""`podstatus get` and `podstatus describe`, for machines without kubectl."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer
import yaml

from podstatus.agent.ask_server import (
    CannotAskError,
    Listed,
    Server,
    Shown,
    find_access,
    shown_kind,
    wall_time,
)
from podstatus.agent.describe_pod import describe_pod
from podstatus.agent.print_tables import print_table
from podstatus.agent.screen import show
from podstatus.agent.tables import Table, object_table
from podstatus.apiserver.reading import text_at
from podstatus.client.blocking import BlockingClient
from podstatus.client.transport import Timing
from podstatus.kube.codec import DecodeError, from_document
from podstatus.kube.pod import Pod

Document = dict[str, Any]


class Output(StrEnum):
    """How objects are printed."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Kind = Annotated[str, typer.Argument(metavar="pods|node|events", help="What to show.")]
Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="One of them.")]
PodKind = Annotated[str, typer.Argument(metavar="pod", help="What to describe: a pod.")]
PodName = Annotated[str, typer.Argument(metavar="NAME", help="Which one.")]
RootDir = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The root-dir of the agent to ask (PODSTATUS_ROOT_DIR)."),
]
Kubeconfig = Annotated[
    Path | None, typer.Option(metavar="PATH", help="The cluster to ask instead of an agent's.")
]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="In this namespace.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="In all of them.")]
Format = Annotated[Output | None, typer.Option("--output", "-o", help="In this form.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Go on with what changes.")]


def get(
    kind: Kind,
    name: Name = None,
    *,
    root_dir: RootDir = None,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Format = None,
    watch: Watch = False,
) -> None:
    """Show pods, the node or events, as kubectl does."""
    if name is not None and (all_namespaces or watch):
        fail("one object is named; leave -A and --watch out")
    with _asking(root_dir, kubeconfig) as server:
        shown = shown_kind(kind)
        where = None if all_namespaces else namespace or server.namespace
        if name is not None:
            listed = Listed([server.get(shown, where, name)])
        else:
            listed = server.list(shown, where)
        _print(shown, listed.items, output, namespaces=all_namespaces, one=name is not None)
        if not listed.items and output in (None, Output.WIDE):
            show(f"{_nothing(shown, where)}\n", err=True)
        if watch:
            _follow(server, shown, where, listed, output)


def describe(
    kind: PodKind,
    name: PodName,
    *,
    root_dir: RootDir = None,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = None,
) -> None:
    """Say all there is to say about a pod, with its events."""
    if kind not in ("pod", "pods", "po"):
        fail(f"{kind!r} cannot be described; a pod can; for all else use kubectl")
    with _asking(root_dir, kubeconfig) as server:
        where = namespace or server.namespace
        document = server.get(shown_kind("pods"), where, name)
        about = f"involvedObject.kind=Pod,involvedObject.name={name}"
        events = server.list(shown_kind("events"), where, about).items
        try:
            pod = from_document(document, Pod)
        except DecodeError as error:
            raise CannotAskError(f"the server's pod cannot be read: {error}") from error
        # Not those of a pod that had the same name before.
        ours = [e for e in events if text_at(e, "involvedObject", "uid") in ("", pod.uid)]
        show(describe_pod(pod, ours, wall_time()))


@contextmanager
def _asking(root_dir: Path | None, kubeconfig: Path | None) -> Iterator[Server]:
    with complaining():
        access = find_access(root_dir, kubeconfig, os.environ)
        with BlockingClient(access, timing=Timing(connect_seconds=3.0)) as client:
            yield Server(client)


@contextmanager
def complaining() -> Iterator[None]:
    """Tell in one line why something cannot be shown, and end the program."""
    try:
        yield
    except CannotAskError as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # Whoever read it has seen enough; nobody is there for the rest, nor for a complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(0) from None


def _print(
    shown: Shown,
    items: list[Document],
    output: Output | None,
    *,
    namespaces: bool = False,
    one: bool = False,
) -> None:
    match output:
        case Output.NAME:
            for item in items:
                show(f"{shown.printed.singular}/{item['metadata']['name']}\n")
        case Output.JSON:
            text = msgspec.json.encode(_whole(items, one=one), order="sorted")
            show(f"{msgspec.json.format(text, indent=4).decode()}\n")
        case Output.YAML:
            show(yaml.safe_dump(_whole(items, one=one), allow_unicode=True))
        case _ if items:
            print_table(_table(shown, items, output, namespaces=namespaces))


def _table(
    shown: Shown, items: list[Document], output: Output | None, *, namespaces: bool
) -> Table:
    wide, namespaces = output is Output.WIDE, namespaces and shown.asked.namespaced
    return object_table(shown.printed, items, wall_time(), wide=wide, namespaces=namespaces)


def _follow(
    server: Server, shown: Shown, where: str | None, listed: Listed, output: Output | None
) -> None:
    namespaces, above = where is None, bool(listed.items)
    least = _table(shown, listed.items, output, namespaces=namespaces).widths()
    for document in server.changes(shown, where, listed.version):
        if output in (None, Output.WIDE):
            table = _table(shown, [document], output, namespaces=namespaces)
            print_table(table, headings=not above, least=least)
            above = True
            least = [max(pair) for pair in zip(least, table.widths(), strict=True)]
        else:
            _print(shown, [document], output, one=True)
        sys.stdout.flush()


def _whole(items: list[Document], *, one: bool) -> Document:
    if one:
        return items[0]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def _nothing(shown: Shown, where: str | None) -> str:
    if where is None or not shown.asked.namespaced:
        return "No resources found"
    return f"No resources found in {where} namespace."


def fail(message: str) -> NoReturn:
    """Say why, and end the program."""
    show(f"podstatus: {message}\n", err=True)
    raise typer.Exit(1)
