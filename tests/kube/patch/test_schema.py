"""The schemas equal the recorded Go types, and are looked up as upstream does."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.patch.errors import PatchError
from podstatus.kube.patch.schema import EVENT, NODE, POD, Schema, schema_of

RECORDED = Path(__file__).parents[2] / "conformance" / "types.json"
TYPES: dict[str, list[dict[str, Any]]] = {
    name.rpartition(".")[2]: fields for name, fields in json.loads(RECORDED.read_text()).items()
}
ANY = {"fieldsV1": "FieldsV1?", "port": "IntOrString"}


def recorded_type(field: dict[str, Any]) -> str:
    """Normalize free-form types, which the recording does not distinguish."""
    text = re.sub(r"\w+\.", "", field["type"])
    return ANY[field["name"]] if text.startswith("any") else text


def without_width(type_text: str) -> str:
    """Normalize integers: only tests/servers/api/test_integers.py distinguishes int32 and int64."""
    return re.sub("int(32|64)", "int", type_text)


def element_of(type_text: str) -> str | None:
    if type_text.startswith("["):
        return type_text[1:-1]
    return type_text.removesuffix("?") if type_text.endswith("?") else None


@pytest.mark.parametrize("name", TYPES)
def test_fields_types_and_patch_strategies_are_the_recorded_ones(name: str) -> None:
    expected = {
        field["name"]: (
            recorded_type(field).removesuffix("?"),
            element_of(recorded_type(field)),
            field.get("patchStrategy", ""),
            field.get("mergeKey", ""),
        )
        for field in TYPES[name]
    }
    schemas = {
        key: (
            without_width(field.schema.type),
            without_width(field.element.type) if field.element else None,
            ",".join(["merge"] * field.merge + ["retainKeys"] * field.retain_keys),
            field.merge_key,
        )
        for key, field in schema_of(name).fields.items()
    }
    assert list(schemas.items()) == list(expected.items())


@pytest.mark.parametrize("schema", [POD, NODE, EVENT])
def test_roots_are_there_to_start_from(schema: Schema) -> None:
    assert schema.field("metadata").schema.type == "ObjectMeta"


def test_an_unknown_type_is_a_mistake_of_the_programmer() -> None:
    with pytest.raises(KeyError, match="Pdo"):
        schema_of("Pdo")


LONG_S_STATUS = "status".replace("s", "\N{LATIN SMALL LETTER LONG S}")


@pytest.mark.parametrize("key", ["status", "Status", "STATUS", LONG_S_STATUS])
def test_fields_are_found_without_regard_to_case(key: str) -> None:
    assert POD.field(key).schema.type == "PodStatus"


@pytest.mark.parametrize("key", ["unknown", "", "statuß", "stat\u0130us", "$patch"])
def test_an_unknown_field_is_an_error(key: str) -> None:
    with pytest.raises(PatchError, match="no field"):
        POD.field(key)


@pytest.mark.parametrize(
    ("kind", "key", "element"),
    [
        pytest.param("PodStatus", "conditions", "PodCondition", id="a list of objects"),
        pytest.param("ObjectMeta", "finalizers", "str", id="a list of scalars"),
        pytest.param("PodSpec", "resources", "ResourceRequirements", id="a pointer to an object"),
        pytest.param("PodSpec", "priority", "int32", id="a pointer to a scalar"),
        pytest.param("ObjectMeta", "deletionTimestamp", "Time", id="a pointer to a time"),
        pytest.param("EmptyDirVolumeSource", "sizeLimit", "Quantity", id="a pointer to a quantity"),
        pytest.param("ManagedFieldsEntry", "fieldsV1", "FieldsV1", id="a pointer to raw JSON"),
    ],
)
def test_a_list_may_stand_where_go_has_a_list_or_a_pointer(
    kind: str, key: str, element: str
) -> None:
    assert schema_of(kind).list_field(key)[0].type == element


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        pytest.param("Pod", "status", id="an object"),
        pytest.param("PodStatus", "phase", id="a string"),
        pytest.param("PodSpec", "overhead", id="a map"),
        pytest.param("ObjectMeta", "creationTimestamp", id="a time"),
        pytest.param("ResourceFieldSelector", "divisor", id="a quantity"),
        pytest.param("HTTPGetAction", "port", id="an int or string"),
    ],
)
def test_a_list_may_stand_nowhere_else(kind: str, key: str) -> None:
    with pytest.raises(PatchError, match="not a list"):
        schema_of(kind).list_field(key)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(["metadata", "labels", "app"], id="below a map"),
        pytest.param(["spec", "nodeName", "x"], id="below a string"),
        pytest.param(["spec", "containers", "name"], id="below a list, not its element"),
        pytest.param(["metadata", "creationTimestamp", "Time"], id="below a time"),
        pytest.param(["spec", "overhead", "cpu"], id="below a map of quantities"),
    ],
)
def test_only_objects_have_fields(path: list[str]) -> None:
    schema = POD
    for key in path[:-1]:
        schema = schema.field(key).schema
    with pytest.raises(PatchError, match="no field"):
        schema.field(path[-1])


@pytest.mark.parametrize(
    ("kind", "key"),
    [("IntOrString", "intVal"), ("IntOrString", "type"), ("Quantity", "format")],
)
def test_go_fields_that_json_never_shows_are_found(kind: str, key: str) -> None:
    assert schema_of(kind).field(key)
