"""Objects as they come: read as far as they can be."""

import msgspec
import pytest

from podstatus.client.informer.decode import ObjectKey, read_bookmark, read_item, read_metadata
from podstatus.kube.objects.cluster import ConfigMap
from podstatus.kube.objects.meta import ObjectMeta

KEY = ObjectKey("default", "a")


def raw(document: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))


def document(uid: str = "u", version: str = "5", **more: object) -> dict[str, object]:
    metadata = {"name": "a", "namespace": "default", "uid": uid, "resourceVersion": version}
    return {"metadata": metadata} | more


def known(uid: str = "u", version: str = "5") -> ConfigMap:
    metadata = ObjectMeta(name="a", namespace="default", uid=uid, resource_version=version)
    return ConfigMap(metadata=metadata)


def test_what_is_known_is_not_decoded_again() -> None:
    ours = known()
    seen = read_item(raw(document()), ConfigMap, {KEY: ours}.get)
    assert seen is not None
    assert seen.object is ours


@pytest.mark.parametrize("ours", [known(uid="v"), known(version="4"), known(version="05")])
def test_another_state_and_another_one_are_decoded(ours: ConfigMap) -> None:
    seen = read_item(raw(document(data={"k": "v"})), ConfigMap, {KEY: ours}.get)
    assert seen is not None
    assert seen.object is not None
    assert (seen.key, seen.uid, seen.version.number) == (KEY, "u", 5)
    assert seen.object.data == {"k": "v"}


def test_of_what_cannot_be_decoded_the_name_is_known() -> None:
    seen = read_item(raw(document(data=5)), ConfigMap, {KEY: known(version="4")}.get)
    assert seen is not None
    assert (seen.key, seen.uid, seen.version.number, seen.object) == (KEY, "u", 5, None)


@pytest.mark.parametrize(
    "unnamed", [5, None, [], {}, {"metadata": None}, {"metadata": {"name": 5}}, {"metadata": {}}]
)
def test_an_object_without_a_name_cannot_be_identified(unnamed: object) -> None:
    assert read_item(raw(unnamed), ConfigMap, {KEY: known()}.get) is None
    assert read_metadata(raw(unnamed)) is None


def test_invalid_json_cannot_be_identified() -> None:
    for text in (b"", b"{", b"[" * 100_000, b'{"metadata": {"name": "\xff"}}'):
        assert read_metadata(msgspec.Raw(text)) is None
        assert read_item(msgspec.Raw(text), ConfigMap, {KEY: known()}.get) is None
        assert read_bookmark(msgspec.Raw(text)) is None
