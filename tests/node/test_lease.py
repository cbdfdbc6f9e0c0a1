"""The node lease in virtual time."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.cluster import Lease, LeaseSpec
from podstatus.kube.objects.meta import ObjectMeta, OwnerReference
from podstatus.kube.scalars.time import MicroTime
from tests.node.scene import SETTINGS, NodeScene


def stored(scene: NodeScene) -> Lease:
    return scene.server.leases["node-c"]


def renewed_at(scene: NodeScene) -> int:
    at = stored(scene).spec.renew_time
    assert at is not None
    return at.unix_nanos()


def lateness(scene: NodeScene) -> float:
    """Seconds since the last renewal."""
    return (scene.clock.now() - renewed_at(scene)) / 1e9


async def test_it_is_created_as_upstreams_and_belongs_to_the_node(scene: NodeScene) -> None:
    await scene.status.sync_once()
    assert await scene.lease.renew_once()
    assert scene.verbs("lease") == ["get_lease", "create_lease"]
    lease = to_document(stored(scene))
    assert (lease["kind"], lease["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")
    assert lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "node-c", "uid": scene.node.metadata.uid}
    ]
    assert lease["metadata"]["namespace"] == "kube-node-lease"
    assert lease["spec"] == {
        "holderIdentity": "node-c",
        "leaseDurationSeconds": 40,
        "renewTime": "2100-01-01T00:00:00.000000Z",
    }


async def test_it_is_renewed_every_ten_seconds_without_asking_first() -> None:
    scene = NodeScene(chance=0.0)
    async with scene.running():
        await scene.clock.advance(1)
        scene.verbs()
        await scene.clock.advance(60)
        assert scene.verbs("lease") == ["replace_lease"] * 6
        assert lateness(scene) < 10.4


async def test_it_waits_for_a_node_to_belong_to(scene: NodeScene) -> None:
    renewing = asyncio.create_task(scene.lease.renew_once())
    await scene.clock.advance(30)
    assert set(scene.verbs()) == {"get_lease"}
    await scene.status.sync_once()
    await scene.clock.advance(1)
    assert await renewing
    assert stored(scene).metadata.owner_references


@pytest.mark.parametrize(
    ("owners", "kept"),
    [
        ((), ["node-c"]),
        ((OwnerReference(api_version="v1", kind="Node", name="node-c", uid="old"),), ["node-c"]),
        ((OwnerReference(api_version="v1", kind="Pod", name="p", uid="x"),), ["p"]),
    ],
)
async def test_one_that_is_there_is_taken_over(
    scene: NodeScene, owners: tuple[OwnerReference, ...], kept: list[str]
) -> None:
    await scene.status.sync_once()
    metadata = ObjectMeta(
        name="node-c",
        namespace="kube-node-lease",
        labels={"a": "b"},
        resource_version="1",
        owner_references=owners or None,
    )
    scene.server.leases["node-c"] = Lease(
        metadata=metadata, spec=LeaseSpec(holder_identity="node-c", lease_transitions=3)
    )
    assert await scene.lease.renew_once()
    lease = stored(scene)
    assert [it.name for it in lease.metadata.owner_references or ()] == kept
    assert "old" not in [it.uid for it in lease.metadata.owner_references or ()]
    assert lease.metadata.labels == {"a": "b"}
    assert (lease.spec.lease_transitions, lease.spec.lease_duration_seconds) == (3, 40)
    assert lateness(scene) == 0


async def test_a_lease_that_another_client_changed_is_read_again(scene: NodeScene) -> None:
    await scene.status.sync_once()
    await scene.lease.renew_once()
    lease = stored(scene)
    other = structs.replace(lease.metadata, resource_version="99", labels={"a": "b"})
    scene.server.leases["node-c"] = structs.replace(lease, metadata=other)
    scene.verbs()
    assert await scene.lease.renew_once()
    assert scene.verbs() == ["replace_lease", "get_lease", "replace_lease"]
    assert stored(scene).metadata.labels == {"a": "b"}


async def test_one_that_was_deleted_is_created_again(scene: NodeScene) -> None:
    await scene.status.sync_once()
    await scene.lease.renew_once()
    scene.server.leases.clear()
    scene.verbs()
    assert await scene.lease.renew_once()
    assert scene.verbs() == ["replace_lease", "get_lease", "create_lease"]


@pytest.mark.parametrize("code", [403, 422])
async def test_a_refusal_is_not_repeated_at_once_for_ever(scene: NodeScene, code: int) -> None:
    await scene.status.sync_once()
    await scene.lease.renew_once()
    scene.server.fail("replace_lease", *[code] * 20)
    scene.verbs()
    assert not await scene.lease.renew_once()
    assert len(scene.verbs()) <= 12


async def test_a_call_that_hangs_is_given_up_after_five_seconds(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        scene.server.hang()
        await scene.clock.advance(10)
        scene.server.hang(hanging=False)
        await scene.clock.advance(5)
        assert lateness(scene) < 6
        assert scene.recoveries == 0


async def test_a_busy_server_is_asked_again_soon_whatever_it_asks_for(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        scene.server.fail("replace_lease", 429, 429, 429)
        await scene.clock.advance(12)
        assert lateness(scene) < 3


async def test_a_slow_server_does_not_make_renewals_seldom() -> None:
    scene = NodeScene(chance=0.0)
    async with scene.running():
        await scene.clock.advance(1)
        for _ in range(12):
            # Each of these costs 0.2 s.
            scene.server.fail("replace_lease", *[429] * 4)
            await scene.clock.advance(10)
        done = [it for it in scene.server.calls if it.verb == "replace_lease" and not it.code]
        assert len(done) == 12


@pytest.mark.parametrize(("outage", "recoveries"), [(20, 0), (60, 1), (600, 1)])
async def test_recovery_after_an_outage_longer_than_the_lease_is_reported(
    scene: NodeScene, outage: float, recoveries: int
) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        scene.server.fail_all()
        await scene.clock.advance(outage)
        assert scene.recoveries == 0
        scene.server.fail_all(0)
        await scene.clock.advance(10)
        assert scene.recoveries == recoveries
        assert lateness(scene) <= 10.4


async def test_a_dead_server_is_asked_seldom(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        scene.server.fail_all()
        await scene.clock.advance(60)
        scene.verbs()
        await scene.clock.advance(70)
        assert 9 <= len(scene.verbs("lease")) <= 13


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["replace_lease", "get_lease", "create_lease"]),
            st.sampled_from([409, 429, 500, 503]),
        ),
        max_size=4,
    ),
    st.floats(0, 1),
)
def test_while_the_server_answers_no_renewal_is_two_seconds_late(
    failures: list[tuple[str, int]], chance: float
) -> None:
    async def script(scene: NodeScene) -> None:
        async with scene.running():
            await scene.clock.advance(1)
            renewals = [renewed_at(scene)]
            for step in range(60):
                if step % 15 == 0:
                    for verb, code in failures:
                        scene.server.fail(verb, code)
                await scene.clock.advance(1)
                renewals.append(renewed_at(scene))
            seconds = [at / 1e9 for at in dict.fromkeys(renewals)]
            assert len(seconds) > 4
            assert all(after - before <= 12 for before, after in pairwise(seconds))

    asyncio.run(script(NodeScene(chance=chance)))


def test_times_have_six_digits() -> None:
    spec = LeaseSpec(renew_time=MicroTime.from_unix_nanos(1_700_000_000_123_456_789))
    assert to_document(spec) == {"renewTime": "2023-11-14T22:13:20.123456Z"}


async def test_another_duration_has_another_period() -> None:
    made = NodeScene(structs.replace(SETTINGS, lease_duration_seconds=8), chance=0.0)
    async with made.running():
        await made.clock.advance(1)
        made.verbs()
        await made.clock.advance(10)
        assert len(made.verbs("replace_lease")) == 5
        assert stored(made).spec.lease_duration_seconds == 8


@pytest.mark.parametrize("seconds", [-864_000, 864_000, 250_000_000_000])
async def test_a_clock_that_is_set_makes_no_lease_late(scene: NodeScene, seconds: int) -> None:
    await scene.status.sync_once()
    assert await scene.lease.renew_once()
    await scene.clock.advance(3)
    scene.clock.step(seconds)
    assert scene.lease.age_seconds == 3
