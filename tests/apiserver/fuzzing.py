"""Malformed requests: recorded ones with random defects."""

import copy
import itertools
import json
import random
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.apiserver.recorded import scenarios
from tests.support.processes.server_process import TOKEN

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND")
_SEGMENTS = (
    "", ".", "..", "pods", "nodes", "leases", "status", "binding", "resize", "log", "exec",
    "proxy", "default", "absent", "%00", "%ff%fe", "%2e%2e", "a%2fb", "*", "ü", "x" * 3000,
    "v1", "v2", "apis", "api", "coordination.k8s.io", "openapi", "v3", "version", "healthz",
)  # fmt: skip
_TYPES = (
    "application/json", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf", "application/yaml", "text/plain", "", ";", "a/b;c=d",
    "application/json; charset=utf-16", "\x80\xff",
)  # fmt: skip
_ACCEPTS = (
    "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "*/*", "", ",,,", ";q=",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "text/html", "*/*;q=nan",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "a/b/c",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "\xff" * 40,
)  # fmt: skip
_NUMBERS = (
    "0", "1", "-1", "5", "1e3", "1_0", "٣", " 7", "+2", "9" * 30, "9" * 400, "9" * 5000, "x", "²",
)  # fmt: skip
_FLAGS = ("true", "false", "1", "0", "T", "yes", "\x00", "TRUE")
_SELECTORS = (
    "a=b", "a in (b,c)", "a in (", "!a", "!!a", "a,,b", "=", "a==b,c!=d", "a>1", "a<x", "((((",
    "metadata.name=a", "spec.nodeName=n1", "status.phase!=Running", "no.such=field", "\\",
    "a\\,b=c", "metadata.name=" + "x" * 2000, ",".join(["a=b"] * 500), "ü=ö", "a notin (b", "\x00",
)  # fmt: skip
_PARAMETERS = {
    "watch": _FLAGS, "allowWatchBookmarks": _FLAGS, "sendInitialEvents": _FLAGS,
    "timeoutSeconds": _NUMBERS, "limit": _NUMBERS, "gracePeriodSeconds": _NUMBERS,
    "resourceVersion": ("0", "1", "3", "²", *_NUMBERS), "labelSelector": _SELECTORS,
    "fieldSelector": _SELECTORS, "dryRun": ("All", "None", ""), "pretty": _FLAGS,
    "continue": ("x", "e30", "bnVsbA", "W10", "////", "=", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"),
    "includeObject": ("None", "Object", "Metadata", "x"), "fieldValidation": ("Strict", "x"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"), "propagationPolicy": ("x", "Orphan"),
    "%zz": ("%", "&=&"),
}  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, 2**31, 2**63 - 1, 2**63, 2**64, 10**40, -(2**63) - 1, "",
    "x", "\x00", "a/b", "../..", "ü" * 300, "x" * 70_000, [], {}, [None], [[]], [{}], {"": None},
    {"a": {"b": []}}, "1Gi", "-1", "1e999999999", "9" * 5000, "2024-13-45T99:99:99Z", "NaN",
    "2024-01-02T03:04:05.999999999999999Z", "9999-12-31T23:59:59Z", {"$patch": "replace"},
    {"$patch": 7}, {"$retainKeys": 3}, [{"$patch": "delete"}], {"$setElementOrder/containers": 1},
    [{"name": "a"}, {"name": "a"}, {"name": None}], [1, "a", None, {}], ["a", "a"],
)  # fmt: skip
_PATHS = ("", "/", "/a", "/metadata/name", "/metadata", "/spec/containers/-", "/~2", "/spec/01")
_PLACEHOLDER = re.compile(r'"\{[^"{}]*\}"')
"""In the recordings: versions and UIDs of earlier responses."""
_ADDRESS = "127.0.0.1"


def deep(levels: int) -> Any:
    """Nested JSON of this depth."""
    value: Any = "x"
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


class Fuzzer:
    """An endless supply of requests: method and bytes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._namespace = "default"

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        for number in itertools.count():
            yield self._new_namespace(f"fuzzed-{number}")
            for step in self._random.choice(scenarios())["steps"]:
                if "path" in step and "method" in step:
                    yield self._request(step)

    def _new_namespace(self, name: str) -> tuple[str, bytes]:
        self._namespace = name
        body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
        text = json.dumps(body)
        head = f"POST /api/v1/namespaces HTTP/1.1\r\nHost: {_ADDRESS}\r\nAuthorization: Bearer "
        return "POST", f"{head}{TOKEN}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()

    def _request(self, step: dict[str, Any]) -> tuple[str, bytes]:
        method = step["method"]
        if self._chance(0.06):
            method = self._random.choice(_METHODS)
        path, body = self._path(step["path"]), self._body(step.get("body"), method)
        headers = self._headers(method, is_list=body.startswith(b"["))
        lines = [f"{method} {path} HTTP/1.1", *headers, f"Content-Length: {len(body)}", "", ""]
        return method, "\r\n".join(lines).encode("latin-1", "replace") + body

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _path(self, path: str) -> str:
        path = path.replace("{ns}", self._namespace if self._chance(0.98) else "absent")
        path, _, query = path.partition("?")
        if self._chance(0.05):
            segments = path.split("/")
            segments[self._random.randrange(1, len(segments))] = self._random.choice(_SEGMENTS)
            path = "/".join(segments)
        if self._chance(0.02):
            path += "/" + self._random.choice(_SEGMENTS)
        pairs = [query] if query else []
        while self._chance(0.25):
            name = self._random.choice(list(_PARAMETERS))
            value = self._random.choice(_PARAMETERS[name])
            pairs.append(f"{name}={value if self._chance(0.05) else quote(value)}")
        path = quote(path, safe="/%*{}:@") or "/"
        target = f"{path}?{'&'.join(pairs)}" if pairs else path
        return "".join(c if "!" <= c <= "~" else quote(c) for c in target)[:8000]

    def _headers(self, method: str, *, is_list: bool) -> list[str]:
        patches = _TYPES[1:2] if is_list else _TYPES[2:4]
        patch = method == "PATCH" and self._chance(0.95)
        types = patches if patch else _TYPES[:1] if self._chance(0.95) else _TYPES
        accepts = _ACCEPTS[:1] if self._chance(0.85) else _ACCEPTS
        headers = [
            f"Host: {_ADDRESS}",
            f"Content-Type: {self._random.choice(types)}",
            f"Accept: {self._random.choice(accepts)}",
        ]
        odd = ("Bearer", "Basic Bearer x", "Bearer \xff", "x" * 5000, "Bearer  ")
        token = f"Bearer {TOKEN}" if self._chance(0.98) else self._random.choice(odd)
        if self._chance(0.01):
            headers.append("Content-Encoding: gzip")
        if self._chance(0.01):
            headers[0] = f"Host: {self._random.choice(('[', 'evil.example', '', '[::1', ':::'))}"
        return [*headers, f"Authorization: {token}"]

    def _body(self, body: Any, method: str) -> bytes:
        if body is None and self._chance(0.9):
            return b""
        body = json.loads(_PLACEHOLDER.sub("null", json.dumps(body)))
        if method == "PATCH" and self._chance(0.15):
            body = [self._operation() for _ in range(self._random.randrange(1, 4))]
        # Mostly create objects: only existing ones can be mistreated.
        breaks = (0, 0, 0, 0, 1) if method == "POST" else (0, 1, 1, 1, 3)
        for _ in range(self._random.choice(breaks)):
            body = self._broken(body)
        text = json.dumps(body, ensure_ascii=self._chance(0.5)).encode()
        return self._damaged(text) if self._chance(0.05) else text

    def _operation(self) -> Any:
        verbs = ("add", "remove", "replace", "move", "copy", "test", "x", None)
        operation = {"op": self._random.choice(verbs), "path": self._random.choice(_PATHS)}
        if self._chance(0.7):
            operation["value"] = self._value()
        if self._chance(0.4):
            operation["from"] = self._random.choice(_PATHS)
        return operation

    def _value(self) -> Any:
        if self._chance(0.01):
            return deep(self._random.choice((20, 100)))
        return copy.deepcopy(self._random.choice(_VALUES))

    def _broken(self, value: Any) -> Any:
        """Return the value with one part replaced, added or removed."""
        if not isinstance(value, dict | list) or not value or self._chance(0.08):
            return self._value()
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key: Any = self._random.choice(keys)
        if self._chance(0.05):
            del value[key]
        elif self._chance(0.05) and isinstance(value, list):
            value.append(copy.deepcopy(value[key]))
        else:
            value[key] = self._broken(value[key])
        return value

    def _damaged(self, text: bytes) -> bytes:
        at = self._random.randrange(len(text) + 1)
        junk = (b"", b"\xff\xfe", b'"\\ud800"', b"[" * 5000, b"\x00", b"1e400", b"}" * 9)
        return text[:at] + self._random.choice(junk) + text[at + self._random.randrange(3) :]
