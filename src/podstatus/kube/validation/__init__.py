"""Validation and defaults of objects, with the messages of kube-apiserver.

Each module validates one part of an object and returns field errors; `unmarshal` and
`strict_fields` check JSON against the Go types. Pure. Rules for updates and for single resources
belong to the strategies of `apiserver`.

Tests: tests/kube/validation; most rules are tested through tests/apiserver.
"""
