"""Generated code and the copy field by field have the same results."""

import itertools
from enum import StrEnum
from typing import Any, NoReturn
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.encoding import frozen_copy
from podstatus.kube.encoding.frozen_copy import freeze
from podstatus.kube.encoding.frozen_copy_codegen import UnusualError, compiled_copier
from podstatus.kube.encoding.wire_struct import FrozenMap, Wire
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.kube.scalars.time import Time
from tests.support.data import strategies


class Word(StrEnum):
    TRUE = "True"


ODD_VALUES: list[Any] = [
    *(None, "", "text", Word.TRUE, 0, 1, 1.0, True, False, b"bytes", object(), Time(5)),
    *(Quantity("1"), (), [], {}, FrozenMap({}), {"cpu": "1"}, {"cpu": Quantity("1")}, {1: "x"}),
    *(("text",), ["text"], (None,), (PodStatus(),), PodStatus()),
]


REQUIRED = {"name": "app", "reason": "Error", "state": ContainerRunState.RUNNING}


def every_kind(kind: type[Wire] = Wire) -> list[type[Wire]]:
    return [kind, *(below for child in kind.__subclasses__() for below in every_kind(child))]


def minimal(kind: type[Wire]) -> Wire:
    """Return a value of this type with its required fields."""
    required = [info.name for info in structs.fields(kind) if info.required]
    return kind(**{name: REQUIRED[name] for name in required})


def replaced_somewhere(data: st.DataObject, value: Any) -> Any:
    """Yield the value with an unusual item in it, at any depth."""
    if isinstance(value, tuple) and value:
        at = data.draw(st.integers(0, len(value) - 1))
        changed = (*value[:at], replaced_somewhere(data, value[at]), *value[at + 1 :])
        return data.draw(st.sampled_from([changed, list(changed)]))
    if isinstance(value, Wire) and data.draw(st.booleans()):
        set_fields = [n for n in value.__struct_fields__ if getattr(value, n)]
        name = data.draw(st.sampled_from(set_fields or value.__struct_fields__))
        return structs.replace(value, **{name: replaced_somewhere(data, getattr(value, name))})
    return data.draw(st.sampled_from(ODD_VALUES))


def outcome(value: Any) -> object:
    try:
        return freeze(value)
    except (TypeError, QuantityError) as error:
        return type(error), str(error)


def outcome_of_walking(value: Any) -> object:
    def refuse(*_: object) -> NoReturn:
        raise UnusualError

    with mock.patch.object(frozen_copy, "compiled_copier", return_value=refuse):
        return outcome(value)


def kinds_in(value: Any) -> object:
    """Return the types of all parts of a value, since 1 equals True in Python."""
    if isinstance(value, Wire):
        return type(value), [kinds_in(item) for item in structs.astuple(value)]
    if isinstance(value, tuple | list):
        return type(value), [kinds_in(item) for item in value]
    if isinstance(value, dict):
        return type(value), {key: kinds_in(item) for key, item in value.items()}
    return type(value)


@pytest.mark.parametrize("kind", every_kind()[1:], ids=lambda kind: kind.__name__)
def test_there_is_code_for_every_kind(kind: type[Wire]) -> None:
    assert freeze(minimal(kind)) == minimal(kind)


@pytest.mark.parametrize("kind", every_kind()[1:], ids=lambda kind: kind.__name__)
def test_an_odd_value_in_any_field_is_judged_alike(kind: type[Wire]) -> None:
    for name, odd in itertools.product(kind.__struct_fields__, ODD_VALUES):
        value = structs.replace(minimal(kind), **{name: odd})
        copied, walked = outcome(value), outcome_of_walking(value)
        assert kinds_in(copied) == kinds_in(walked)
        assert copied == walked


@given(strategies.pods())
def test_usual_pods_are_taken_over_alike(pod: Pod) -> None:
    copied, walked = compiled_copier(Pod)(pod), outcome_of_walking(pod)
    assert copied == walked
    assert kinds_in(copied) == kinds_in(walked)


@given(strategies.pods(), st.data())
def test_odd_pods_are_judged_alike(pod: Pod, data: st.DataObject) -> None:
    odd = replaced_somewhere(data, pod)
    if isinstance(odd, Wire):
        copied, walked = outcome(odd), outcome_of_walking(odd)
        assert kinds_in(copied) == kinds_in(walked)
        assert copied == walked
