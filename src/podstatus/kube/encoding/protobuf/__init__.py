"""Protobuf by tables of field numbers: no generated code, no dependency on a protobuf version.

`wire` has the bytes of fields, `field_table` the tables, `struct_codec` the conversion of structs.
The tables of an API do not belong here; they are next to the types that they describe.

Tests: tests/kube/encoding/protobuf.
"""
