"""Recorded files of the kubelet: decoded alike, and encoded byte for byte alike."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.checkpoint.formats import v1_28, v1_36
from podstatus.checkpoint.formats.checksum import fnv1a_32
from podstatus.checkpoint.formats.go_json_encode import encode_go_json
from podstatus.checkpoint.formats.go_json_scanner import MalformedError
from podstatus.checkpoint.formats.v1_28 import UnsupportedFieldError
from podstatus.kube.objects.allocation import Allocations, PodResourceInfo
from podstatus.kube.objects.containers import ResourceClaim, ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.quantity import Quantity
from tests.support.data.strategies import QUANTITIES

RECORDED = Path(__file__).parents[2] / "conformance" / "checkpoints"
UID = PodUID("u-1")
RESOURCES, RESIZES = v1_36.ResourceEntries, v1_36.ResizeEntries


def golden(version: str, pattern: str) -> list[Path]:
    paths = sorted((RECORDED / version).glob(pattern))
    assert paths
    return paths


def cpu(amount: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": Quantity(amount)})


def read_v1_36(text: bytes) -> Allocations:
    return Allocations(allocated=v1_36.decode_entries(RESOURCES, v1_36.unwrap(text)))


def write_v1_36(allocations: Allocations) -> bytes:
    return v1_36.wrap(v1_36.encode_entries(RESOURCES, allocations.allocated))


READ = {"v1.36.4": read_v1_36, "v1.28.0": v1_28.decode_checkpoint}
WRITE = {"v1.36.4": write_v1_36, "v1.28.0": v1_28.encode_checkpoint}


@pytest.mark.parametrize("version", READ)
def test_files_of_a_kubelet_are_written_again_byte_for_byte(version: str) -> None:
    for path in golden(version, "write-*.reloads") + golden(version, "load-intact.reloads"):
        text = path.read_bytes()
        assert WRITE[version](READ[version](text)) == text, path.name


@pytest.mark.parametrize("version", READ)
def test_files_that_a_kubelet_accepts_are_accepted(version: str) -> None:
    for path in golden(version, "*.reloads"):
        READ[version](path.read_bytes())


@pytest.mark.parametrize("version", READ)
def test_files_that_a_kubelet_refuses_are_refused(version: str) -> None:
    for path in golden(version, "*.refused"):
        with pytest.raises(MalformedError):
            READ[version](path.read_bytes())


@pytest.mark.parametrize("version", READ)
def test_every_flipped_bit_is_noticed_or_harmless(version: str) -> None:
    path = min(golden(version, "write-*.reloads"), key=lambda path: path.stat().st_size)
    text = path.read_bytes()
    for bit in range(8 * len(text)):
        flipped = bytearray(text)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            read = READ[version](bytes(flipped))
        except MalformedError:
            continue
        assert read == READ[version](text), f"bit {bit}"


@pytest.mark.parametrize("version", READ)
def test_a_truncated_file_is_refused(version: str) -> None:
    text = golden(version, "write-*.reloads")[0].read_bytes()
    for length in range(len(text)):
        with pytest.raises(MalformedError):
            READ[version](text[:length])


# v1.36


def test_the_data_has_the_order_and_the_escapes_of_go() -> None:
    resources = ResourceRequirements(
        claims=(ResourceClaim(name="<gpu>"), ResourceClaim(name="b", request="r")),
        requests={"memory": Quantity("1"), "cpu": Quantity("0.5")},
        limits={},
    )
    info = PodResourceInfo(container_resources={"b&": resources, "a\u2028\udcff": cpu("1")})
    assert v1_36.encode_entries(RESOURCES, {UID: info}) == (
        '{"entries":{"u-1":{"ContainerResources":{'
        r'"a\u2028\ufffd":{"requests":{"cpu":"1"}},'
        r'"b\u0026":{"requests":{"cpu":"500m","memory":"1"},'
        r'"claims":[{"name":"\u003cgpu\u003e"},{"name":"b","request":"r"}]}},'
        '"PodLevelResources":null}}}'
    )


def test_no_entries_are_left_out() -> None:
    assert v1_36.wrap(v1_36.encode_entries(RESOURCES, {})) == b'{"data":"{}","checksum":694314937}'


def test_the_checksum_is_that_of_the_data_and_of_nothing_else() -> None:
    sealed = v1_36.wrap("{}")
    assert v1_36.unwrap(b' {"checksum": 694314937, "x": 1, "DATA": "{}"}\n') == "{}"
    with pytest.raises(MalformedError, match="its checksum is 694314937, its data has"):
        v1_36.unwrap(sealed.replace(b"{}", b"{ }"))


@pytest.mark.parametrize("data", ["", "[]", "{", '{"entries":[]}', '{"entries":{"u":5}}'])
def test_data_that_is_no_data_is_refused_though_its_checksum_is_right(data: str) -> None:
    assert v1_36.unwrap(v1_36.wrap(data)) == data
    for kind in (RESOURCES, RESIZES):
        with pytest.raises(MalformedError, match=r"^its data: "):
            v1_36.decode_entries(kind, data)


def test_resize_statuses_have_the_same_envelope() -> None:
    data = v1_36.encode_entries(RESIZES, {PodUID("b"): "Deferred", PodUID("a"): ""})
    assert data == '{"entries":{"a":"","b":"Deferred"}}'
    assert v1_36.decode_entries(RESIZES, data) == {"a": "", "b": "Deferred"}
    assert v1_36.decode_entries(RESIZES, "null") == {}


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
amounts = st.dictionaries(names, st.sampled_from(QUANTITIES).map(Quantity), max_size=3)
requirements = st.builds(
    ResourceRequirements,
    limits=st.none() | amounts,
    requests=st.none() | amounts,
    claims=st.none() | st.lists(st.builds(ResourceClaim, name=names, request=names)).map(tuple),
)
infos = st.builds(
    PodResourceInfo,
    container_resources=st.dictionaries(names, requirements, max_size=3),
    pod_level_resources=st.none() | requirements,
)


@given(st.dictionaries(names.map(PodUID), infos, max_size=3))
def test_what_is_written_is_read_back_and_written_alike(
    pods: dict[PodUID, PodResourceInfo],
) -> None:
    text = write_v1_36(Allocations(allocated=pods))
    assert write_v1_36(read_v1_36(text)) == text
    assert read_v1_36(text).allocated.keys() == pods.keys()


# v1.28


def test_the_checkpoint_of_a_new_node() -> None:
    assert v1_28.encode_checkpoint(Allocations()) == b'{"checksum":670531192}'
    assert v1_28.decode_checkpoint(b'{"checksum":670531192}') == Allocations()


@pytest.mark.parametrize(
    ("amount", "reloads"),
    [
        *((amount, True) for amount in ("0", "1", "100m", "1Gi", "1e3", "1.500")),
        *((amount, False) for amount in ("0.5", "0.5Gi", "1000m", "1024Mi", "0.1n", "16Ei")),
    ],
)
def test_a_spelling_that_go_does_not_keep_makes_a_file_that_is_refused(
    amount: str, *, reloads: bool
) -> None:
    info = PodResourceInfo(container_resources={"app": cpu(amount)})
    text = v1_28.encode_checkpoint(Allocations(allocated={UID: info}))
    if reloads:
        assert v1_28.encode_checkpoint(v1_28.decode_checkpoint(text)) == text
    else:
        with pytest.raises(MalformedError, match="its checksum is"):
            v1_28.decode_checkpoint(text)


@pytest.mark.parametrize(
    ("text", "allocated"),
    [
        (b'{"allocationEntries":null,"checksum":825644725}', {}),
        (b'{"allocationEntries":{"]":null},"checksum":%d}', {"]": {}}),
    ],
)
def test_nil_maps_count_in_the_checksum(text: bytes, allocated: dict[str, object]) -> None:
    if b"%d" in text:
        text %= fnv1a_32(DUMP_OF_A_NIL_POD.encode())
    assert {
        uid: info.container_resources
        for uid, info in v1_28.decode_checkpoint(text).allocated.items()
    } == allocated


DUMP_OF_A_NIL_POD = (
    "(*state.PodResourceAllocationCheckpoint){"
    "AllocationEntries:(map[string]map[string]v1.ResourceList)map[]:<nil>] "
    "ResizeStatusEntries:(map[string]v1.PodResizeStatus)map[] Checksum:(checksum.Checksum)0}"
)


def test_a_container_without_requests_stays_one() -> None:
    info = PodResourceInfo(container_resources={"app": ResourceRequirements()})
    text = v1_28.encode_checkpoint(Allocations(allocated={UID: info}))
    assert b'{"u-1":{"app":null}}' in text
    assert v1_28.decode_checkpoint(text).allocated == {UID: info}


def test_bytes_that_are_no_text_do_not_make_a_file_that_is_refused() -> None:
    text = v1_28.encode_checkpoint(Allocations(resize_statuses={PodUID("\udcff"): "Deferred"}))
    assert v1_28.decode_checkpoint(text).resize_statuses == {"\ufffd": "Deferred"}


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (PodResourceInfo(pod_level_resources=cpu("1")), r"no pod-level resources \(pod u-1\)"),
        (
            PodResourceInfo(
                container_resources={"app": ResourceRequirements(limits={"cpu": Quantity("1")})}
            ),
            r"requests only, no limits \(container app of pod u-1\)",
        ),
        (
            PodResourceInfo(
                container_resources={"app": ResourceRequirements(claims=(ResourceClaim(),))}
            ),
            "requests only, no claims",
        ),
    ],
)
def test_v1_28_says_what_it_cannot_carry(info: PodResourceInfo, message: str) -> None:
    with pytest.raises(UnsupportedFieldError, match=message):
        v1_28.encode_checkpoint(Allocations(allocated={UID: info}))
    with pytest.raises(UnsupportedFieldError, match="no actuated resources"):
        v1_28.encode_checkpoint(Allocations(actuated={UID: info}))


# Text and checksum


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("\b\f\n\r\t\x00\x1f\x7f", r'"\b\f\n\r\t\u0000\u001f' + '\x7f"'),
        ("<>&'\"\\/", r"""\u003c\u003e\u0026'\"\\/""".join('""')),
        ("é漢😀\u2028\u2029\ufffd", r'"é漢😀\u2028\u2029' + '\ufffd"'),
        ("\udcff\ud800", r'"\ufffd\ufffd"'),
        ({"b": None, "a": (), "B": 7}, '{"B":7,"a":[],"b":null}'),
        (Quantity("1000m"), '"1"'),
        (Quantity("1.500"), '"1.500"'),
    ],
)
def test_values_are_written_as_go_writes_them(value: object, text: str) -> None:
    assert encode_go_json(value) == text


@pytest.mark.parametrize(("data", "sum_"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C)])
def test_the_checksum_is_fnv1a(data: bytes, sum_: int) -> None:
    assert fnv1a_32(data) == sum_
