"""The messages of CRI v1 as frozen structs, and their codec. Pure.

Each struct has the fields that are used here; `field_numbers` is data and has all of them. Meaning
does not belong here.

Tests: tests/runtime/cri/api.
"""
