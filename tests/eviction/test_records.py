"""Records of evictions survive the agent, and damaged ones do no harm."""

import asyncio
from pathlib import Path

import pytest

from podstatus.eviction.records import EvictionRecords
from podstatus.kube.objects.pod import PodUID
from podstatus.workers.lifecycle.state_machine import Eviction, RequestedEviction

UID = PodUID("1b4e28ba-2fa1-11d2-883f-0016d3cca427")
REQUESTED = RequestedEviction(
    eviction=Eviction(reason="Evicted", message="The node was low. ", is_disruption=True),
    grace_seconds=7,
)


@pytest.mark.parametrize("uid", [UID, PodUID("../../etc/passwd"), PodUID("x" * 300)])
async def test_a_record_is_found_by_the_next_agent(tmp_path: Path, uid: PodUID) -> None:
    records = EvictionRecords(tmp_path / "evictions")
    assert records.find(uid) is None
    await records.store(uid, REQUESTED)
    assert records.find(uid) == REQUESTED
    later = EvictionRecords(tmp_path / "evictions")
    assert (later.find(uid), later.uids()) == (REQUESTED, (uid,))
    await later.remove(uid)
    assert EvictionRecords(tmp_path / "evictions").uids() == ()


def test_a_damaged_record_is_set_aside(tmp_path: Path) -> None:
    asyncio.run(EvictionRecords(tmp_path).store(UID, REQUESTED))
    file = tmp_path / f"{UID}.json"
    file.write_bytes(file.read_bytes().replace(b"low", b"LOW"))
    assert EvictionRecords(tmp_path).uids() == ()
    assert not file.exists()
    assert file.with_name(f"{UID}.json.damaged").exists()


async def test_without_a_disk_to_write_to_the_eviction_goes_on(tmp_path: Path) -> None:
    (tmp_path / "evictions").touch()
    records = EvictionRecords(tmp_path / "evictions")
    await records.store(UID, REQUESTED)
    assert records.find(UID) is None
    await records.remove(UID)
