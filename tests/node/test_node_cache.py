"""The cache of the Node object, and the health checks."""

import pytest
from msgspec import structs

from podstatus.base.service_heartbeats import Heartbeats
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.node import Node
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import node_problems
from podstatus.testing.clock import FakeClock

WOULD_BE = Node(metadata=ObjectMeta(name="node-c"))


def seen(version: str, uid: str = "u") -> Node:
    metadata = structs.replace(WOULD_BE.metadata, uid=uid, resource_version=version)
    return structs.replace(WOULD_BE, metadata=metadata)


def test_before_it_is_registered_it_is_the_one_we_would_register() -> None:
    own = NodeCache(WOULD_BE)
    assert own.current() is WOULD_BE
    assert (own.server_copy, own.uid) == (None, "")


@pytest.mark.parametrize(
    ("first", "then", "kept"),
    [
        (seen("9"), seen("10"), seen("10")),
        (seen("10"), seen("9"), seen("10")),
        (seen("10"), seen("9", uid="another"), seen("9", uid="another")),
        (seen("a"), seen("9"), seen("9")),
    ],
)
def test_the_newest_one_is_kept(first: Node, then: Node, kept: Node) -> None:
    own = NodeCache(WOULD_BE)
    own.update(first)
    own.update(then)
    assert own.current() == kept


def test_one_that_is_gone_is_the_one_we_would_register_again() -> None:
    own = NodeCache(WOULD_BE)
    own.update(seen("10"))
    own.forget()
    assert own.current() is WOULD_BE
    own.update(seen("9", uid="v"))
    assert own.uid == "v"


@pytest.mark.parametrize(("gone", "uid"), [(seen("11"), ""), (seen("11", uid="before"), "u")])
def test_a_watch_that_is_late_does_not_make_us_forget_a_new_one(gone: Node, uid: str) -> None:
    own = NodeCache(WOULD_BE)
    own.update(seen("10"))
    own.remove(gone)
    assert own.uid == uid


async def test_problems_are_those_of_the_checks_and_of_who_stands_still() -> None:
    clock = FakeClock()
    heartbeats = Heartbeats(clock)
    heartbeats.register("relist", max_silent_seconds=180)
    heartbeats.register("alerts", max_silent_seconds=60, is_vital=False)
    problems: list[str | None] = ["runtime is down", None]
    checks = [lambda it=it: it for it in problems]
    assert node_problems(checks, heartbeats) == ("runtime is down",)
    await clock.advance(190)
    assert node_problems(checks, heartbeats) == (
        "runtime is down",
        "relist is not healthy: relist was last active 190 s ago; threshold is 180 s",
    )
