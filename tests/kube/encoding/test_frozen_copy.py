import copy
import pickle
import re
from enum import StrEnum
from typing import Any, cast

import pytest

from podstatus.kube.encoding.frozen_copy import FieldTypeError, freeze
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.meta import ManagedFieldsEntry, ObjectMeta
from podstatus.kube.objects.pod_status import ContainerStatus, HostIP, PodCondition, PodStatus
from podstatus.kube.scalars.quantity import Quantity, QuantityError


def test_an_immutable_value_is_not_copied() -> None:
    conditions, containers = (PodCondition(type="Ready"),), (ContainerStatus(name="app"),)
    status = PodStatus(phase="Running", conditions=conditions, container_statuses=containers)
    assert freeze(status) is status


def test_a_map_can_be_changed_by_its_maker_without_harm() -> None:
    amounts = {"cpu": Quantity("1")}
    frozen = freeze(PodStatus(allocated_resources=amounts))
    amounts["cpu"] = Quantity("2")
    assert frozen.allocated_resources == {"cpu": "1"}


def test_a_map_of_texts_is_copied_as_it_is() -> None:
    labels = {"app": "web"}
    frozen = freeze(ObjectMeta(labels=labels))
    labels.clear()
    assert frozen.labels == {"app": "web"}


def test_a_map_deep_inside_can_be_changed_too() -> None:
    limits = {"cpu": Quantity("1")}
    container = ContainerStatus(resources=ResourceRequirements(limits=limits))
    frozen = freeze(PodStatus(container_statuses=(container,)))
    limits.clear()
    assert frozen.container_statuses is not None
    assert frozen.container_statuses[0].resources == ResourceRequirements(
        limits={"cpu": Quantity("1")}
    )


def test_a_list_becomes_a_tuple() -> None:
    conditions: Any = [PodCondition(type="Ready")]
    containers: Any = [ContainerStatus(name="app")]
    frozen = freeze(PodStatus(conditions=conditions, container_statuses=containers))
    conditions.clear()
    containers.clear()
    assert frozen.conditions == (PodCondition(type="Ready"),)
    assert frozen.container_statuses == (ContainerStatus(name="app"),)


def test_an_empty_list_stays_apart_from_none() -> None:
    nothing: Any = []
    assert freeze(PodStatus(container_statuses=nothing)).container_statuses == ()
    assert freeze(PodStatus()).container_statuses is None


def test_amounts_written_as_plain_text_or_numbers_become_quantities() -> None:
    amounts: Any = {"cpu": "1000m", "memory": 64}
    frozen = freeze(PodStatus(allocated_resources=amounts)).allocated_resources
    assert frozen is not None
    assert [type(amount) for amount in frozen.values()] == [Quantity, Quantity]
    assert frozen["cpu"].canonical == "1"


def test_an_amount_that_cannot_be_read_is_refused() -> None:
    amounts: Any = {"cpu": "lots"}
    with pytest.raises(QuantityError, match="'lots'"):
        freeze(PodStatus(allocated_resources=amounts))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"conditions": 5}, "conditions: expected tuple or None, got int"),
        ({"conditions": ["Ready"]}, "conditions[0]: expected PodCondition, got str"),
        ({"phase": None}, "phase: expected str, got NoneType"),
        ({"observed_generation": True}, "observed_generation: expected int, got bool"),
        ({"start_time": "2024-01-01T00:00:00Z"}, "start_time: expected Time or None, got str"),
        ({"start_time": 1_700_000_000}, "start_time: expected Time or None, got int"),
        ({"allocated_resources": ["cpu"]}, "allocated_resources: expected dict or None, got list"),
        ({"resources": {}}, "resources: expected ResourceRequirements or None, got dict"),
        (
            {"container_statuses": [ContainerStatus(), ContainerStatus(resources=cast(Any, 7))]},
            "container_statuses[1].resources: expected ResourceRequirements or None, got int",
        ),
    ],
)
def test_what_does_not_belong_somewhere_is_refused_with_the_way_to_it(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(FieldTypeError, match=f"^{re.escape(message)}$"):
        freeze(PodStatus(**fields))


class Says(StrEnum):
    TRUE = "True"


@pytest.mark.parametrize("count", [1, 2, 5])
class TestAmongSeveralConditions:
    def test_good_ones_are_taken_as_they_are(self, count: int) -> None:
        status = PodStatus(conditions=tuple(PodCondition(type=str(n)) for n in range(count)))
        assert freeze(status) is status

    def test_one_with_a_wrong_type_is_named(self, count: int) -> None:
        bad = PodCondition(type="Ready", observed_generation=cast(Any, True))
        conditions = (*(PodCondition(type=str(n)) for n in range(count - 1)), bad)
        with pytest.raises(FieldTypeError) as refusal:
            freeze(PodStatus(conditions=conditions))
        path = f"conditions[{count - 1}].observed_generation"
        assert str(refusal.value) == f"{path}: expected int, got bool"

    def test_one_of_another_kind_is_named(self, count: int) -> None:
        conditions = (*(PodCondition(type=str(n)) for n in range(count - 1)), cast(Any, HostIP()))
        with pytest.raises(FieldTypeError, match=r"\[\d+\]: expected PodCondition, got HostIP"):
            freeze(PodStatus(conditions=conditions))

    def test_one_that_spells_with_an_enum_becomes_plain_text(self, count: int) -> None:
        odd = PodCondition(type="Ready", status=Says.TRUE)
        conditions = (odd, *(PodCondition(type=str(n)) for n in range(count - 1)))
        frozen = freeze(PodStatus(conditions=conditions)).conditions
        assert frozen is not None
        assert [type(condition.status) for condition in frozen] == [str] * count


def test_a_text_that_holds_no_text_is_refused_in_a_map() -> None:
    labels: Any = {"app": 5}
    with pytest.raises(FieldTypeError, match=r"labels\[app\]: expected str, got int"):
        freeze(ObjectMeta(labels=labels))


def test_a_field_of_any_type_takes_anything() -> None:
    entry = ManagedFieldsEntry(fields_v1={"f:metadata": {}})
    assert freeze(entry) is entry


def test_a_map_that_was_taken_over_cannot_be_changed() -> None:
    frozen = freeze(ObjectMeta(labels={"app": "web"})).labels
    assert frozen is not None
    for change in (
        lambda: frozen.update(app="db"),
        lambda: frozen.pop("app"),
        lambda: frozen.setdefault("more", "x"),
        lambda: frozen.__setitem__("app", "db"),
        lambda: frozen.__delitem__("app"),
        frozen.popitem,
        frozen.clear,
    ):
        with pytest.raises(TypeError, match="modify a copy"):
            change()
    assert frozen == {"app": "web"}


def test_what_was_taken_over_is_taken_again_as_it_is_and_can_be_copied() -> None:
    frozen = freeze(PodStatus(allocated_resources={"cpu": Quantity("1")}))
    assert freeze(frozen) is frozen
    assert pickle.loads(pickle.dumps(frozen)) == copy.deepcopy(frozen) == frozen  # noqa: S301


def test_equal_parts_are_taken_from_the_known_copy() -> None:
    amounts = {"cpu": Quantity("1")}
    known = freeze(PodStatus(conditions=(PodCondition(type="Ready"),), allocated_resources=amounts))
    again = freeze(
        PodStatus(
            phase="Running",
            conditions=(PodCondition(type="Ready"),),
            allocated_resources=amounts,
            host_ips=(HostIP(ip="192.0.2.1"),),
        ),
        known,
    )
    assert (again.conditions, again.phase) == (known.conditions, "Running")
    assert again.conditions is known.conditions
    assert again.host_ips == (HostIP(ip="192.0.2.1"),)
    amounts["cpu"] = Quantity("2")
    assert again.allocated_resources == {"cpu": "1"}


def test_other_parts_are_checked_though_there_is_a_known_copy() -> None:
    known = freeze(PodStatus(conditions=(PodCondition(type="Ready"),)))
    wrong = PodStatus(conditions=(PodCondition(type=cast(Any, 1)),))
    with pytest.raises(FieldTypeError, match=r"conditions\[0\]\.type"):
        freeze(wrong, known)
