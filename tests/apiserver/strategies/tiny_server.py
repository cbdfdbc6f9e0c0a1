"""A minimal API server to run strategies on recorded exchanges: a dict, no HTTP.

It answers requests for single objects in sequence, and returns None for what it does not support
(lists, watches, JSON patches).
"""

import re
from typing import Any, cast

import msgspec

from podstatus.apiserver.http.errors import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from podstatus.apiserver.resources import RESOURCES, ResourceInfo
from podstatus.apiserver.strategies.base import DeleteOptions, Document, MalformedObjectError
from podstatus.apiserver.strategies.by_resource import STRATEGIES
from podstatus.apiserver.strategies.pod.binding import bind_pod, check_binding_name
from podstatus.kube.patch import PatchError, apply_patch
from podstatus.kube.scalars.time import Time

NOW = Time.parse("2026-01-02T03:04:05Z")
STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_PATH = re.compile(
    r"/apis?/(?:[a-z0-9.]+/)?v1(?:/namespaces/([^/]+)(?=/))?/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?"
)
_PATCHES = ("application/strategic-merge-patch+json", "application/merge-patch+json")

Answer = tuple[int, Document]


class TinyServer:
    """Objects by resource, namespace and name."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str], Document] = {}
        self._version = 100

    def answer(self, method: str, path: str, body: Any, content_type: str) -> Answer | None:
        """Return code and body of the response; None for an unsupported request."""
        match = _PATH.fullmatch(path)
        by_plural = {resource.plural: resource for resource in RESOURCES}
        if match is None or match[2] not in by_plural:
            return None
        request = _Request(self, by_plural[match[2]], match[1] or "", match[3] or "", match[4])
        try:
            return request.play(method, body, content_type)
        except StatusError as problem:
            return problem.code, problem.document

    def find(self, key: tuple[str, str, str]) -> Document | None:
        return self._objects.get(key)

    def store(self, key: tuple[str, str, str], document: Document) -> Document:
        if document != self._objects.get(key):
            self._version += 1
            meta = document["metadata"] | {"resourceVersion": str(self._version)}
            document = document | {"metadata": meta}
        self._objects[key] = document
        return document

    def remove(self, key: tuple[str, str, str]) -> None:
        del self._objects[key]

    def new_uid(self) -> str:
        return f"00000000-0000-0000-0000-{self._version:012}"


class _Request:
    def __init__(
        self, server: TinyServer, resource: ResourceInfo, namespace: str, name: str, sub: str | None
    ) -> None:
        self.server, self.resource, self.sub = server, resource, sub or ""
        self.strategy = STRATEGIES[resource.plural]
        self.namespace, self.name = namespace, name

    @property
    def key(self) -> tuple[str, str, str]:
        return self.resource.plural, self.namespace, self.name

    def play(self, method: str, body: Any, content_type: str) -> Answer | None:
        if method == "POST" and self.sub == "binding":
            return self._bind(body)
        if method == "POST" and not self.name and isinstance(body, dict):
            return 201, self._create(body)
        if method == "GET" and self.name and not self.sub:
            return 200, self._existing()
        if method == "PUT" and self.name and isinstance(body, dict):
            return self._replace(body)
        if method == "PATCH" and content_type in _PATCHES and isinstance(body, dict):
            return 200, self._patch(body, content_type)
        if method == "DELETE" and self.name:
            return self._delete(body or {})
        return None

    def _existing(self) -> Document:
        stored = self.server.find(self.key)
        if stored is None:
            raise not_found(self.resource.plural, self.name, group=self.resource.group)
        return stored

    def _create(self, body: Document) -> Document:
        sent = self._read(body)
        meta = sent["metadata"]
        if meta.get("generateName") and not meta.get("name"):
            meta = meta | {"name": f"{meta['generateName']}x2x4x"}
        if self.resource.namespaced:
            meta = {"namespace": self.namespace} | meta
        if meta.get("namespace", "") != self.namespace:
            raise bad_request("the namespace of the object does not match the request")
        self.name = meta.get("name", "")
        document = self.strategy.prepare_create(sent | {"metadata": meta})
        server_owned = {"uid": self.server.new_uid(), "creationTimestamp": NOW.wire}
        document = document | {"metadata": document["metadata"] | server_owned}
        self._check(self.strategy.validate_create(document))
        if self.server.find(self.key) is not None:
            raise already_exists(self.resource.plural, self.name, group=self.resource.group)
        return self.server.store(self.key, document)

    def _replace(self, body: Document) -> Answer:
        sent = self._read(body)
        if self.server.find(self.key) is None and self.strategy.allow_create_on_update:
            metadata = {k: v for k, v in sent["metadata"].items() if k != "resourceVersion"}
            return 201, self._create(sent | {"metadata": metadata})
        return 200, self._update(sent, self._existing())

    def _patch(self, body: Document, content_type: str) -> Document:
        old = self._existing()
        if "strategic" in content_type and self.resource.schema is not None:
            try:
                new = cast(Document, apply_patch(cast(Any, old), body, self.resource.schema))
            except PatchError as error:
                raise bad_request(str(error)) from error
        else:
            new = _merged(old, body)
        try:
            return self._update(self.strategy.decode(new), old)
        except MalformedObjectError as error:
            raise invalid("Status", self.name, []) from error

    def _update(self, new: Document, old: Document) -> Document:
        version = new["metadata"].get("resourceVersion")
        if version is not None and version != old["metadata"]["resourceVersion"]:
            raise conflict(self.resource.plural, self.name, STALE, group=self.resource.group)
        if new["metadata"].get("name", self.name) != self.name:
            raise bad_request("the name of the object does not match the name on the URL")
        meta = new["metadata"] | {"resourceVersion": old["metadata"]["resourceVersion"]}
        document = self.strategy.prepare_update(new | {"metadata": meta}, old, self.sub)
        self._check(self.strategy.validate_update(document, old, self.sub))
        return self.server.store(self.key, document)

    def _read(self, body: Document) -> Document:
        if body.get("kind", self.resource.kind) != self.resource.kind:
            raise bad_request("the object is of another kind")
        try:
            return self.strategy.decode(body)
        except MalformedObjectError as error:
            raise bad_request(str(error)) from error

    def _check(self, causes: Any) -> None:
        if causes:
            raise invalid(self.resource.kind, self.name, causes, group=self.resource.group)

    def _bind(self, binding: Document) -> Answer:
        check_binding_name(self.name, binding)
        pod = bind_pod(self._existing(), binding, NOW)
        self.server.store(self.key, pod)
        return 201, {"kind": "Status", "status": "Success"}

    def _delete(self, body: Document) -> Answer:
        old = self._existing()
        meta = old["metadata"]
        preconditions = body.get("preconditions") or {}
        for key, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            expected = preconditions.get(key)
            if expected is not None and expected != meta[key]:
                end = "deleted and then recreated" if key == "uid" else "modified"
                why = (
                    f"the {label} in the precondition ({expected}) does not match the {label} "
                    f"in record ({meta[key]}). The object might have been {end}"
                )
                raise conflict(self.resource.kind, self.name, why)
        options = DeleteOptions(
            grace_period_seconds=body.get("gracePeriodSeconds"), dry_run="dryRun" in body
        )
        if self.resource.plural != "pods":
            self.server.remove(self.key)
            return 200, {"kind": "Status", "status": "Success"}
        return 200, self._delete_gracefully(old, options)

    def _delete_gracefully(self, old: Document, options: DeleteOptions) -> Document:
        meta = old["metadata"]
        period = self.strategy.grace_period(old, options)
        if "deletionTimestamp" in meta:
            current, requested = meta["deletionGracePeriodSeconds"], options.grace_period_seconds
            shorter = requested is not None and (1 if requested < 0 else requested) < current
            period = (1 if (requested or 0) < 0 else requested or 0) if shorter else current
            generation = meta["generation"]
        else:
            generation = meta["generation"] + 1
        marked = {
            "deletionTimestamp": NOW.wire,
            "deletionGracePeriodSeconds": period,
            "generation": generation,
        }
        document = old | {"metadata": meta | marked}
        if options.dry_run:
            return document
        self.server.store(self.key, document)
        if not period and not meta.get("finalizers"):
            self.server.remove(self.key)
        return document


def _merged(document: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def as_sent(value: Any) -> Any:
    """Return a deep copy, as if sent over the wire."""
    return msgspec.json.decode(msgspec.json.encode(value))
