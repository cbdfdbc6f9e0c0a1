"""The page that maps upstream's names to ours names what there is.

In the page a name of ours begins with its room (`pods.phase.get_phase`), or stands in a table
whose heading says the class it is a method of (`ours, in ...`).
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import podstatus
from podstatus import StatusManager

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "upstream.md"
TEXT = PAGE.read_text()
SURPRISES = (ROOT / "tests" / "conformance" / "SURPRISES.md").read_text()
ROOMS = ("base", "checkpoint", "kube", "pods", "status", "testing")

# The interface Manager of pkg/kubelet/status/status_manager.go, with the PodStatusProvider in it.
UPSTREAM_V1_36_4 = [
    "AddPodUpdateNotifier",
    "BackfillPodResizeConditions",
    "ClearPodResizeInProgressCondition",
    "ClearPodResizePendingCondition",
    "GetPodResizeConditions",
    "GetPodStatus",
    "IsPodResizeDeferred",
    "IsPodResizeInfeasible",
    "RemoveOrphanedStatuses",
    "SetContainerReadiness",
    "SetContainerStartup",
    "SetPodResizeInProgressCondition",
    "SetPodResizePendingCondition",
    "SetPodStatus",
    "Start",
    "TerminatePod",
]


def names_with_their_room() -> Iterator[str]:
    rooms = "|".join(ROOMS)
    yield from re.findall(rf"`(?:podstatus\.)?((?:{rooms})(?:\.\w+)+)", TEXT)


def names_under_a_class() -> Iterator[str]:
    for table in re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE):
        heading, _, *rows = table.splitlines()
        owner = re.search(r"ours, in `([\w.]+)`", heading)
        if owner is None:
            continue
        for row in rows:
            for method in re.findall(r"`([a-z]\w*)\(", row.split("|")[2]):
                yield f"{owner[1]}.{method}"


def resolve(name: str) -> object:
    """The object behind a dotted name: as much of it as is a module, then attributes."""
    found: object = podstatus
    path = "podstatus"
    for part in name.split("."):
        path = f"{path}.{part}"
        try:
            found = import_module(path)
        except ModuleNotFoundError:
            found = getattr(found, part)
    return found


OURS = sorted({*names_with_their_room(), *names_under_a_class()})


@pytest.mark.parametrize("name", OURS)
def test_every_name_of_ours_on_the_page_exists(name: str) -> None:
    assert resolve(name) is not None


def test_the_page_names_every_public_method_of_the_manager() -> None:
    methods = [name for name in vars(StatusManager) if not name.startswith("_")]
    assert [name for name in methods if f"status.manager.StatusManager.{name}" not in OURS] == []


@pytest.mark.parametrize("method", UPSTREAM_V1_36_4)
def test_the_map_has_every_method_of_upstreams_manager(method: str) -> None:
    the_map = TEXT.partition("\n## The map\n")[2].partition("\n## ")[0]
    assert re.search(rf"^\| `{method}` \| `[a-z]", the_map, re.MULTILINE)


def test_a_name_that_does_not_exist_is_found_out() -> None:
    with pytest.raises(AttributeError):
        resolve("status.manager.StatusManager.no_such_method")
    with pytest.raises(AttributeError):
        resolve("no_such_room.module")


def test_links_lead_to_files_that_exist() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", TEXT)
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


def test_surprises_that_are_cited_are_in_the_list() -> None:
    cited = set(re.findall(r"\bS (\d+)", TEXT))
    first_list = SURPRISES.partition("\n# ")[0]
    assert cited
    assert cited <= set(re.findall(r"^(\d+)\. ", first_list, re.MULTILINE))
