"""Decode a manifest into static pods and problems.

Upstream: tryDecodeSinglePod, pkg/kubelet/config/common.go v1.36.4. Unlike upstream, a manifest may
contain several documents and lists of pods, unknown fields are rejected, and all problems are
reported.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from podstatus.kube.defaults import set_pod_defaults
from podstatus.kube.encoding.codec import DecodeError, from_document, to_document
from podstatus.kube.objects.pod import CONFIG_MIRROR, Pod
from podstatus.kube.patch.schema import POD
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time
from podstatus.kube.validation.pod_spec import validate_new_pod
from podstatus.kube.validation.strict_fields import strict_field_errors
from podstatus.kube.validation.unmarshal import unmarshal_error, value_fits_schema
from podstatus.sources.manifest.api_references import api_references
from podstatus.sources.manifest.static_pods import ManifestOrigin, content_hash, make_static_pod
from podstatus.sources.manifest.yaml_documents import (
    DecodeBudget,
    DocumentError,
    ManifestDocument,
    read_document,
    split_documents,
)

MAX_BYTES = 10 * 2**20
"""Upstream: maxConfigLength, pkg/kubelet/config/common.go v1.36.4."""

_MAX_OBJECTS = 1000
"""Documents of a manifest, and objects in them; a node runs some hundred pods at most."""
_MAX_PROBLEMS = 20
"""Reported problems per manifest; each is logged and compared with the previous ones."""
_MAX_MESSAGE = 4096
"""Maximum characters of a problem's message."""
_LISTS = ("List", "PodList")
_ERROR_PATH = re.compile(r"(?P<why>.*) - at `(?:key in )?\$\.?(?P<path>.*)`", re.DOTALL)


class ManifestProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of a manifest, for its author."""

    location: str
    """The path of the file or directory, or the URL."""
    message: str
    document: int = 0
    """Counted from 1; 0 for the whole manifest."""
    pod: str = ""
    """Namespace and name, if known."""

    def __str__(self) -> str:
        where = [self.location]
        if self.document:
            where.append(f"document {self.document}")
        if self.pod:
            where.append(f"pod {self.pod}")
        return f"{', '.join(where)}: {self.message}"


class Manifest(msgspec.Struct, frozen=True):
    """The valid pods of a manifest, and its problems."""

    pods: tuple[Pod, ...] = ()
    problems: tuple[ManifestProblem, ...] = ()


class _InvalidManifestError(ValueError):
    """A document is not a valid static pod."""


def read_manifest(data: bytes, origin: ManifestOrigin, seen: Time) -> Manifest:
    """Decode a manifest; `seen` is the time at which it was read. Never raises for bad input."""
    if len(data) > MAX_BYTES:
        return _unreadable(origin, f"larger than {MAX_BYTES // 2**20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _unreadable(origin, "not valid UTF-8")
    documents = split_documents(text)
    if not documents:
        return _unreadable(origin, "empty; add a Pod, or remove the manifest")
    if len(documents) > _MAX_OBJECTS:
        return _unreadable(origin, f"more than {_MAX_OBJECTS} documents")
    budget = DecodeBudget()
    results = [
        result
        for number, document in enumerate(documents, 1)
        for result in _decode_document(number, document, budget, origin, seen)
    ]
    if len(results) > _MAX_OBJECTS:
        return _unreadable(origin, f"more than {_MAX_OBJECTS} objects")
    return Manifest(
        pods=tuple(result for result in results if isinstance(result, Pod)),
        problems=_limit_problems([r for r in results if isinstance(r, ManifestProblem)]),
    )


def _limit_problems(problems: list[ManifestProblem]) -> tuple[ManifestProblem, ...]:
    """The first problems, and the number of omitted ones."""
    reported = problems[:_MAX_PROBLEMS]
    if len(problems) > len(reported):
        more = f"{len(problems) - len(reported)} more problems are not shown"
        reported.append(ManifestProblem(location=problems[0].location, message=more))
    return tuple(reported)


def _decode_document(
    number: int, raw: ManifestDocument, budget: DecodeBudget, origin: ManifestOrigin, seen: Time
) -> Iterator[Pod | ManifestProblem]:
    def problem(message: str, document: Any = None) -> ManifestProblem:
        return ManifestProblem(
            location=origin.location,
            document=number,
            pod=_pod_name(document)[:_MAX_MESSAGE],
            message=_truncate(message),
        )

    try:
        documents = list(_items(read_document(raw, budget)))
    except (DocumentError, _InvalidManifestError) as error:
        yield problem(str(error))
        return
    except Exception as error:  # noqa: BLE001 - a manifest must not crash the agent
        yield problem(f"internal error, please report this: {error!r}")
        return
    for document in documents:
        try:
            yield _decode_pod(document, origin, seen)
        except _InvalidManifestError as error:
            yield problem(str(error), document)
        except UnicodeEncodeError:
            yield problem("contains an unpaired UTF-16 surrogate", document)
        except Exception as error:  # noqa: BLE001 - a manifest must not crash the agent
            yield problem(f"internal error, please report this: {error!r}", document)


def _unreadable(origin: ManifestOrigin, message: str) -> Manifest:
    return Manifest(problems=(ManifestProblem(location=origin.location, message=message),))


def _items(document: Any) -> Iterator[Any]:
    """The objects of a document, which may be a List or PodList. Raises _InvalidManifestError."""
    if not isinstance(document, dict) or document.get("kind") not in _LISTS:
        yield document
        return
    if document.get("apiVersion") != "v1":
        raise _InvalidManifestError(_wrong_kind(document))
    if unknown := sorted(document.keys() - {"apiVersion", "kind", "metadata", "items"}):
        raise _InvalidManifestError(
            _strict_decoding_error([f'unknown field "{key}"' for key in unknown])
        )
    items = document.get("items") or []
    if not isinstance(items, list):
        raise _InvalidManifestError("items: expected a list of pods")
    is_pods = document["kind"] == "PodList"
    if len(items) > _MAX_OBJECTS:
        raise _InvalidManifestError(f"items: more than {_MAX_OBJECTS}")
    for item in items:
        bare = is_pods and isinstance(item, dict)
        yield {"apiVersion": "v1", "kind": "Pod"} | item if bare else item


def _decode_pod(document: Any, origin: ManifestOrigin, seen_at: Time) -> Pod:
    _check_kind(document)
    try:
        if errors := strict_field_errors(document, POD):
            raise _InvalidManifestError(_strict_decoding_error(errors))
        written = from_document(document, Pod)
        if not value_fits_schema(document, POD) and (message := unmarshal_error(document, POD)):
            raise _InvalidManifestError(message)
        if not written.metadata.name:
            raise _InvalidManifestError("metadata.name: Required value: name is needed for the pod")
        pod = make_static_pod(
            _with_defaults(written), content_hash(written, origin), origin, seen_at
        )
    except DecodeError as error:
        raise _InvalidManifestError(_wrong_type(error)) from None
    except RecursionError:
        raise _InvalidManifestError("nested too deeply") from None
    except OverflowError:
        raise _InvalidManifestError("a number is too large") from None
    _validate(pod, written)
    return pod


def _check_kind(document: Any) -> None:
    if not isinstance(document, dict):
        kind = {list: "a list", str: "a string", bool: "a boolean"}.get(type(document), "a number")
        raise _InvalidManifestError(
            f"expected an object of apiVersion v1 and kind Pod, found {kind}"
        )
    if (document.get("apiVersion"), document.get("kind")) != ("v1", "Pod"):
        raise _InvalidManifestError(_wrong_kind(document))


def _wrong_kind(document: dict[str, Any]) -> str:
    problems = []
    for key in ("apiVersion", "kind"):
        value = document.get(key)
        problems.append(f"{key} is {go_quoted(str(value))}" if value else f"{key} is missing")
    return f"{' and '.join(problems)}; use apiVersion v1 and kind Pod"


def _with_defaults(pod: Pod) -> Pod:
    document = to_document(pod)
    set_pod_defaults(document["spec"])
    return from_document(document, Pod)


def _validate(pod: Pod, written: Pod) -> None:
    """Raise _InvalidManifestError for what the API server or the kubelet would reject."""
    causes = [f"{cause.field}: {cause.message}" for cause in validate_new_pod(pod)]
    if CONFIG_MIRROR in (written.metadata.annotations or {}):
        field = f"metadata.annotations[{CONFIG_MIRROR}]"
        causes.append(f"{field}: Forbidden: only mirror pods may have this annotation")
    if causes:
        text = ", ".join(dict.fromkeys(causes))
        raise _InvalidManifestError(
            f"invalid pod: [{text}]" if len(causes) > 1 else f"invalid pod: {text}"
        )
    if kinds := api_references(pod.spec):
        raise _InvalidManifestError(f"static pods may not reference {', '.join(kinds)}")


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"


def _strict_decoding_error(errors: list[str]) -> str:
    return f"strict decoding error: {', '.join(errors)}"


def _wrong_type(error: DecodeError) -> str:
    message = str(error).removeprefix("cannot read a Pod: ")
    if match := _ERROR_PATH.fullmatch(message):
        message = f"{match['path']}: {match['why'][:1].lower()}{match['why'][1:]}"
    return message.replace("`", "").replace(" | null", "").replace("array", "list")


def _pod_name(document: Any) -> str:
    """namespace/name of the document if it is a Pod with a name, else empty."""
    is_pod = isinstance(document, dict) and document.get("kind") == "Pod"
    meta = document.get("metadata") if is_pod else None
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(name, str):
        return ""
    namespace = meta.get("namespace")
    return f"{namespace if isinstance(namespace, str) and namespace else 'default'}/{name}"
