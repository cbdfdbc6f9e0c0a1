"""The generic registry: names, UIDs, resource versions, preconditions, finalizers, deletion.

Rules of a single resource belong in its strategy. Upstream: k8s.io/apiserver v0.36.4,
pkg/registry/generic/registry/store.go and pkg/registry/rest.
"""

import secrets
import uuid
from collections.abc import Callable, Mapping

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import NAMESPACES, NODES, PODS, ResourceInfo
from podstatus.apiserver.storage.store import StorageKey, Store, StoredObject, with_resource_version
from podstatus.apiserver.strategies.base import (
    Document,
    MalformedObjectError,
    Strategy,
)
from podstatus.apiserver.strategies.managed_fields import update_managed_fields
from podstatus.apiserver.strategies.pod.admission import resize_error
from podstatus.base.clock import Clock
from podstatus.kube.objects.cluster import DeleteOptions, Preconditions
from podstatus.kube.scalars.time import Time
from podstatus.kube.validation.field_errors import (
    FieldError,
    invalid_value,
)

OPTIMISTIC_LOCK_ERROR = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
IMMORTAL_NAMESPACES = frozenset({"default", "kube-public", "kube-system"})
_NAME_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Upstream's alphabet for generated names: no vowels, so no words, and no look-alikes."""

_MAX_UNIX_SECONDS = 253_402_300_799
"""The end of year 9999, the last that RFC 3339 can encode; a grace period may reach beyond it."""

UpdateFunc = Callable[[Document], Document]


class Registry:
    """Creates, updates and deletes objects in a store. Not thread-safe."""

    def __init__(self, store: Store, strategies: Mapping[str, Strategy], clock: Clock) -> None:
        self._store = store
        self._strategies = strategies
        self._clock = clock

    def get(self, target: ResourcePath) -> StoredObject:
        """Return an object. Raises StatusError (404)."""
        stored = self._store.get(target.resource.plural, _key(target))
        if stored is None:
            raise errors.not_found(
                target.resource.plural, target.name or "", group=target.resource.group
            )
        return stored

    def create(
        self, target: ResourcePath, document: Document, *, dry_run: bool = False
    ) -> Document:
        """Store a new object and return it as stored.

        Raises StatusError: 400, 403, 404 (namespace), 409 or 422; StorageError.
        """
        resource, strategy = target.resource, self._strategy(target.resource)
        document = _decode(strategy, document)
        metadata = self._new_metadata(target, document)
        document = strategy.prepare_create(document | {"metadata": metadata})
        self._raise_if_invalid(resource, document, strategy.validate_create(document))
        key = StorageKey(target.namespace or "", metadata["name"])
        if target.namespace is not None:
            self._check_namespace(resource, target.namespace, metadata["name"])
        if self._store.get(resource.plural, key) is not None:
            raise errors.already_exists(resource.plural, key.name, group=resource.group)
        return self._put(resource, key, document, dry_run=dry_run)

    def replace(
        self, target: ResourcePath, document: Document, *, manager: str = "", dry_run: bool = False
    ) -> tuple[Document, bool]:
        """Replace an object; return it as stored, and whether it was created.

        `manager` is the client's field manager. Raises StatusError, StorageError.
        """
        resource, strategy = target.resource, self._strategy(target.resource)
        document = _decode(strategy, document)
        metadata = document["metadata"]
        stored = self._store.get(resource.plural, _key(target))
        if stored is None and strategy.allow_create_on_update and not target.subresource:
            new = {key: value for key, value in metadata.items() if key != "resourceVersion"}
            return self.create(target, document | {"metadata": new}, dry_run=dry_run), True
        old = self.get(target).document()
        uid = metadata.get("uid")
        if uid and uid != old["metadata"]["uid"]:
            raise _uid_mismatch(target, uid, old["metadata"]["uid"])
        if not metadata.get("resourceVersion") and not strategy.allow_unconditional_update:
            why = "must be specified for an update"
            cause = invalid_value("metadata.resourceVersion", 0, why)
            self._raise_if_invalid(resource, old, [cause])
        return self._update(target, document, old, manager=manager, dry_run=dry_run), False

    def patch(
        self, target: ResourcePath, change: UpdateFunc, *, manager: str = "", dry_run: bool = False
    ) -> Document:
        """Apply `change` to an object; return it as stored. Raises StatusError, StorageError."""
        old = self.get(target).document()
        new = _decode(self._strategy(target.resource), change(old), old=old)
        name = new["metadata"].get("name")
        if name != target.name:
            raise errors.bad_request(
                f"the name of the object ({name}) does not match the name on the URL "
                f"({target.name})"
            )
        return self._update(target, new, old, manager=manager, dry_run=dry_run)

    def overwrite(self, target: ResourcePath, change: UpdateFunc) -> Document:
        """Apply `change` without validation, for internal callers.

        Raises StatusError, StorageError.
        """
        old = self.get(target).document()
        return self._put(target.resource, _key(target), change(old), dry_run=False)

    def remove(self, target: ResourcePath) -> None:
        """Remove an object without any check, for internal callers.

        Raises StatusError, StorageError.
        """
        stored = self.get(target)
        self._remove(target.resource, stored.key, stored.document(), dry_run=False)

    def _update(
        self, target: ResourcePath, new: Document, old: Document, *, manager: str, dry_run: bool
    ) -> Document:
        """Validate and store an update; an update that changes nothing is not written."""
        resource, strategy = target.resource, self._strategy(target.resource)
        _check_namespace_of(new["metadata"], target)
        version = new["metadata"].get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise errors.conflict(
                resource.plural, target.name or "", OPTIMISTIC_LOCK_ERROR, group=resource.group
            )
        uid = new["metadata"].get("uid") or old["metadata"]["uid"]
        metadata = _merge_server_metadata(new["metadata"], old["metadata"]) | {"uid": uid}
        new = strategy.prepare_update(new | {"metadata": metadata}, old, target.subresource)
        if new == old:
            return old
        causes = strategy.validate_update(new, old, target.subresource)
        self._raise_if_invalid(resource, new, causes)
        if resource is PODS and target.subresource == "resize":
            self._admit_resize(new, old)
        if resource is PODS and target.subresource == "status":
            now = Time.from_unix_nanos(self._now_seconds() * 10**9)
            new = update_managed_fields(new, old, manager, now)
        if resource is not NAMESPACES and _can_be_removed(new["metadata"]):
            return self._remove(resource, _key(target), new, dry_run=dry_run)
        return self._put(resource, _key(target), new, dry_run=dry_run)

    def delete(self, target: ResourcePath, options: DeleteOptions) -> tuple[Document, bool]:
        """Delete an object, or mark it for deletion.

        Returns its last state, and whether it is removed. Raises StatusError, StorageError.
        """
        resource = target.resource
        stored = self.get(target)
        document = stored.document()
        metadata = document["metadata"]
        _check_preconditions(resource, metadata, options.preconditions or Preconditions())
        dry_run = "All" in (options.dry_run or ())
        strategy = self._strategy(resource)
        is_held = bool(metadata.get("finalizers")) or resource is NAMESPACES
        if metadata.get("deletionTimestamp") is None:
            grace = strategy.grace_period(document, options)
        elif (shorter := _shorter_grace(metadata, options)) is not None:
            grace = shorter
        elif metadata.get("deletionGracePeriodSeconds") or is_held:
            return document, False
        else:
            return self._remove(resource, stored.key, document, dry_run=dry_run), True
        marked = document | {"metadata": self._deletion_metadata(metadata, grace)}
        if resource is NAMESPACES:
            _check_deletable(metadata["name"])
            marked |= {"status": (document.get("status") or {}) | {"phase": "Terminating"}}
        if grace > 0 or is_held:
            return self._put(resource, stored.key, marked, dry_run=dry_run), False
        return self._remove(
            resource,
            stored.key,
            marked,
            dry_run=dry_run,
            # A watch of pods gets the deletionTimestamp first, even if the pod is removed at once.
            marked_first=resource is PODS,
        ), True

    def _deletion_metadata(self, metadata: Document, grace: int) -> Document:
        """Return the metadata with deletion timestamp, grace period and generation set."""
        first = metadata.get("deletionTimestamp") is None
        marked = metadata | {"deletionGracePeriodSeconds": grace}
        at = self._now_seconds()
        if first or grace < (metadata.get("deletionGracePeriodSeconds") or 0):
            marked["deletionTimestamp"] = Time.from_unix_nanos(
                min(at + grace, _MAX_UNIX_SECONDS) * 10**9
            ).wire
        if first and metadata.get("generation"):
            marked["generation"] = metadata["generation"] + 1
        return marked

    def _new_metadata(self, target: ResourcePath, document: Document) -> Document:
        sent = document.get("metadata") or {}
        _check_namespace_of(sent, target)
        if sent.get("resourceVersion"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        name = sent.get("name") or ""
        if not name and sent.get("generateName"):
            name = sent["generateName"][:58] + _random_suffix()
        metadata = {key: value for key, value in sent.items() if key not in _SERVER_OWNED_FIELDS}
        metadata |= {
            "name": name,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": Time.from_unix_nanos(self._now_seconds() * 10**9).wire,
        }
        if target.namespace is not None:
            metadata["namespace"] = target.namespace
        return metadata

    def _check_namespace(self, resource: ResourceInfo, namespace: str, name: str) -> None:
        stored = self._store.get(NAMESPACES.plural, StorageKey("", namespace))
        if stored is None:
            raise errors.not_found(NAMESPACES.plural, namespace)
        if stored.document()["metadata"].get("deletionTimestamp"):
            raise StatusError(
                403,
                "Forbidden",
                f'{resource.plural} "{name}" is forbidden: unable to create new content in '
                f"namespace {namespace} because it is being terminated",
            )

    def _admit_resize(self, new: Document, old: Document) -> None:
        node = self._store.get(NODES.plural, StorageKey("", new["spec"].get("nodeName", "")))
        error = resize_error(new, old, None if node is None else node.document())
        if error is not None:
            raise error

    def _raise_if_invalid(
        self, resource: ResourceInfo, document: Document, causes: list[FieldError]
    ) -> None:
        if causes:
            name = document["metadata"].get("name") or ""
            raise errors.invalid(resource.kind, name, causes, group=resource.group)

    def _put(
        self, resource: ResourceInfo, key: StorageKey, document: Document, *, dry_run: bool
    ) -> Document:
        if dry_run:
            return document
        return with_resource_version(
            document, self._store.put(resource.plural, key, document).version
        )

    def _remove(
        self,
        resource: ResourceInfo,
        key: StorageKey,
        document: Document,
        *,
        dry_run: bool,
        marked_first: bool = False,
    ) -> Document:
        if dry_run:
            return document
        last = self._store.delete(resource.plural, key, document, marked_first=marked_first)
        return last.document()

    def _strategy(self, resource: ResourceInfo) -> Strategy:
        return self._strategies[resource.plural]

    def _now_seconds(self) -> int:
        return self._clock.now() // 10**9


_SERVER_OWNED_FIELDS = frozenset(
    {
        "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation",
    }
)  # fmt: skip
_DELETION_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds")


def _check_deletable(namespace: str) -> None:
    """Upstream: admission plugin NamespaceLifecycle."""
    if namespace in IMMORTAL_NAMESPACES:
        raise errors.forbidden("namespaces", namespace, "this namespace may not be deleted")


def _decode(strategy: Strategy, document: Document, *, old: Document | None = None) -> Document:
    """Decode a sent object, or the result of a patch of `old`.

    Raises StatusError: 400 for a sent object, 422 after a patch.
    """
    try:
        if old is None:
            document = strategy.decode(document)
        else:
            document = strategy.decode_patched(document, old)
    except MalformedObjectError as error:
        code, reason = (400, "BadRequest") if old is None else (422, "Invalid")
        raise StatusError(code, reason, str(error)) from error
    return document if document.get("metadata") else document | {"metadata": {}}


def _shorter_grace(metadata: Document, options: DeleteOptions) -> int | None:
    """Return the requested grace period if it is shorter than the current one."""
    current, requested = metadata.get("deletionGracePeriodSeconds"), options.grace_period_seconds
    if current is None or requested is None or requested >= current:
        return None
    return requested


def _uid_mismatch(target: ResourcePath, expected: str, actual: str) -> StatusError:
    key = "/".join(filter(None, (target.resource.plural, target.namespace, target.name)))
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {expected}, "
        f"UID in object meta: {actual}"
    )
    resource = target.resource
    return errors.conflict(resource.plural, target.name or "", why, group=resource.group)


def _key(target: ResourcePath) -> StorageKey:
    return StorageKey(target.namespace or "", target.name or "")


def _random_suffix() -> str:
    return "".join(secrets.choice(_NAME_CHARACTERS) for _ in range(5))


def _check_namespace_of(metadata: Document, target: ResourcePath) -> None:
    namespace = metadata.get("namespace")
    if namespace and namespace != (target.namespace or ""):
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _merge_server_metadata(new: Document, old: Document) -> Document:
    """Return the metadata of an update with server-owned fields of the old object.

    Deletion fields that the update tries to set are kept, so that validation rejects them: only a
    DELETE may set them.
    """
    client_owned = {key: value for key, value in new.items() if key not in _SERVER_OWNED_FIELDS}
    server_owned = {key: old[key] for key in old if key in _SERVER_OWNED_FIELDS}
    deletion = {key: new[key] for key in _DELETION_FIELDS if new.get(key) is not None}
    if "deletionTimestamp" in server_owned:
        deletion.pop("deletionTimestamp", None)
    return client_owned | server_owned | deletion


def _can_be_removed(metadata: Document) -> bool:
    """True if the object is marked for deletion and has no finalizers and no grace period left."""
    return (
        metadata.get("deletionTimestamp") is not None
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def _check_preconditions(
    resource: ResourceInfo, metadata: Document, expected: Preconditions
) -> None:
    version = expected.resource_version
    for what, required, actual, cause in (
        ("UID", expected.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", version, metadata["resourceVersion"], "modified"),
    ):
        if required is not None and required != actual:
            why = (
                f"the {what} in the precondition ({required}) does not match the {what} in record "
                f"({actual}). The object might have been {cause}"
            )
            raise errors.conflict(resource.kind, metadata["name"], why, group=resource.group)
