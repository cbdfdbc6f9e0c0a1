"""An in-memory API for pods, with real patches and errors."""

import itertools
from collections import defaultdict, deque
from typing import Any, Protocol

import msgspec
from msgspec import structs

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.api_errors import ApiError, api_error
from podstatus.kube.encoding.codec import DecodeError, from_document, to_document
from podstatus.kube.objects.pod import ApiUID, Pod
from podstatus.kube.patch import NestedListError, PatchError, PatchFormatError, apply_patch
from podstatus.kube.patch.schema import POD
from podstatus.kube.scalars.time import Time


class ApiCall(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call of the API."""

    verb: str
    namespace: str
    name: str
    code: int | None = None
    """The HTTP status of a failed call, None otherwise."""
    patch: bytes | None = None
    uid: str | None = None
    grace_period_seconds: int | None = None


class PodChangeHandler(Protocol):
    """Receives changes of the stored pods."""

    def update_pod(self, pod: Pod) -> None:
        """Handle a new or changed pod."""

    def remove_pod(self, pod: Pod) -> None:
        """Handle the removal of a pod."""


class InMemoryPodApi:
    """Pods by namespace and name; satisfies `podstatus.status.ports.PodApi`.

    A patch or delete with a UID other than the stored pod's fails with 409, as on the real server;
    `check_uid=False` disables this. So does a patch with an old resource version. Every write sets
    a new one, unless `versions=False`. The `watcher` (for example a `PodManager`) is notified of
    every change, like a watch.
    """

    def __init__(
        self,
        *pods: Pod,
        check_uid: bool = True,
        versions: bool = True,
        watcher: PodChangeHandler | None = None,
    ) -> None:
        self.calls: list[ApiCall] = []
        self._pods: dict[tuple[str, str], Pod] = {}
        self._failures: defaultdict[tuple[str, str, str], deque[int]] = defaultdict(deque)
        self._check_uid = check_uid
        self._versions = itertools.count(1) if versions else None
        self._watcher = watcher
        for pod in pods:
            self.put(pod)

    # Calls of the status manager

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Return a pod. Raises ApiError (404)."""
        return self._find_pod(ApiCall(verb="get", namespace=namespace, name=name))

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Apply a strategic merge patch; return the patched pod. Raises ApiError."""
        call = ApiCall(verb="patch", namespace=namespace, name=name, patch=patch)
        try:
            document = _decode_patch(patch)
        except PatchFormatError as error:
            raise self._rejection(call, error) from error
        metadata = document.get("metadata") or {}
        version = _text(metadata.get("resourceVersion"))
        stored = self._find_pod(call, uid=_text(metadata.get("uid")), version=version)
        try:
            return self._apply_patch(stored, document)
        except (PatchError, DecodeError) as error:
            self.calls.pop()
            raise self._rejection(call, error) from error

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        """Delete the pod if its UID matches. Raises ApiError (404 or 409)."""
        call = ApiCall(
            verb="delete",
            namespace=namespace,
            name=name,
            uid=uid,
            grace_period_seconds=grace_period_seconds,
        )
        self._find_pod(call, uid=uid)
        self.remove(namespace, name)

    # Calls of tests and other writers

    def put(self, pod: Pod) -> None:
        self._store(from_document(to_document(pod), Pod))

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return the stored pod, None if it does not exist."""
        return self._pods.get((namespace, name))

    def pods(self) -> list[Pod]:
        """Return all stored pods, in order of creation."""
        return list(self._pods.values())

    def patch(self, namespace: str, name: str, patch: dict[str, Any]) -> bool:
        """Apply a strategic merge patch of another writer; return whether the pod exists."""
        stored = self._pods.get((namespace, name))
        if stored is not None:
            self._apply_patch(stored, patch)
        return stored is not None

    def request_deletion(self, namespace: str, name: str, *, at: str, grace: int = 30) -> None:
        """Mark a pod for deletion, like DELETE with a grace period. Raises ApiError (404)."""
        stored = self._pods.get((namespace, name))
        if stored is None:
            raise api_error(404, f"delete pod {namespace}/{name}: not found")
        metadata = structs.replace(
            stored.metadata, deletion_timestamp=Time.parse(at), deletion_grace_period_seconds=grace
        )
        self._store(structs.replace(stored, metadata=metadata))

    def remove(self, namespace: str, name: str) -> None:
        """Remove a pod at once, if it exists."""
        removed = self._pods.pop((namespace, name), None)
        if removed is not None and self._watcher is not None:
            self._watcher.remove_pod(removed)

    def fail(self, verb: str, namespace: str, name: str, *, code: int, times: int = 1) -> None:
        """Make the next calls of this verb for this pod fail with an HTTP status."""
        if verb not in ("get", "patch", "delete"):
            raise ValueError(f"unknown verb {verb!r}; use get, patch or delete")
        self._failures[verb, namespace, name].extend([code] * times)

    def stop_failing(self) -> None:
        """Let all calls succeed again."""
        self._failures.clear()

    # Internals

    def _find_pod(self, call: ApiCall, uid: str | None = None, version: str | None = None) -> Pod:
        """Return the pod of a call, or raise its injected or natural error."""
        stored = self._pods.get((call.namespace, call.name))
        failures = self._failures[call.verb, call.namespace, call.name]
        code = None
        if failures:
            code = failures.popleft()
        elif stored is None:
            code = 404
        elif (self._check_uid and uid not in (None, stored.uid)) or (
            version not in (None, stored.metadata.resource_version)
        ):
            code = 409
        self.calls.append(structs.replace(call, code=code))
        if stored is None or code is not None:
            raise api_error(
                code or 404, f"{call.verb} pod {call.namespace}/{call.name}: HTTP {code}"
            )
        return stored

    def _rejection(self, call: ApiCall, error: PatchError | DecodeError) -> ApiError:
        code = _status_code(error)
        self.calls.append(structs.replace(call, code=code))
        return api_error(code, f"{call.verb} pod {call.namespace}/{call.name}: {error}")

    def _apply_patch(self, stored: Pod, patch: dict[str, Any]) -> Pod:
        document = apply_patch(to_document(stored), patch, POD)
        return self._store(from_document(document, Pod))

    def _store(self, pod: Pod) -> Pod:
        if self._versions is not None:
            version = str(next(self._versions))
            pod = structs.replace(
                pod, metadata=structs.replace(pod.metadata, resource_version=version)
            )
        self._pods[pod.full_name] = pod
        if self._watcher is not None:
            self._watcher.update_pod(pod)
        return pod


def _decode_patch(patch: bytes) -> dict[str, Any]:
    try:
        return decode_json(patch, dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise PatchFormatError(f"a patch must be a JSON object: {error}") from error


def _status_code(error: PatchError | DecodeError) -> int:
    """Return kube-apiserver's status code for an invalid patch or result."""
    if isinstance(error, PatchFormatError):
        return 400
    return 422 if isinstance(error, NestedListError | DecodeError) else 500


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
