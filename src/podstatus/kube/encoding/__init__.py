"""Conversion between wire form and values, as Go's encoders do it.

The base class of wire types, the codec, JSON values with Go's equality, checked frozen copies and
semantic equality. Pure. Kinds of objects do not belong here: this package does not import
`kube.objects`.

Tests: tests/kube/encoding.
"""
