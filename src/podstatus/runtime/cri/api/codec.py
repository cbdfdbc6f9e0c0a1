"""The codec of CRI messages: struct `CriMount` is the message `Mount`."""

from typing import Final

import msgspec

from podstatus.kube.encoding.protobuf.field_table import parse_field_table
from podstatus.kube.encoding.protobuf.struct_codec import StructCodec
from podstatus.runtime.cri.api.field_numbers import ENUMS, MESSAGES


class CriMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message of CRI v1; every field has the zero value of proto3 as its default."""


CODEC: Final = StructCodec(parse_field_table(MESSAGES), prefix="Cri")


def enum_number(enum: str, name: str) -> int:
    """Return the number of a value. Raises KeyError if the enum does not have it."""
    return _NUMBERS[enum][name]


_NUMBERS: Final = {
    enum: {field.name: field.number for field in values}
    for enum, values in parse_field_table(ENUMS).items()
}
