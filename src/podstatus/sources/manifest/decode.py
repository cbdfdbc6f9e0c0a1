"""Pods out of the text of a manifest, and what is wrong with the others.

Upstream: tryDecodeSinglePod, pkg/kubelet/config/common.go v1.36.4. Unlike there, a text may have
several documents and lists of pods, unknown fields are refused, and all mistakes are told.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from podstatus.kube.encoding.codec import DecodeError, from_document, to_document
from podstatus.kube.objects.pod import CONFIG_MIRROR, Pod
from podstatus.kube.patch.schema import POD
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time
from podstatus.kube.validation.defaults import set_pod_defaults
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
"""Documents of a text, and objects in them: a node has room for some hundred pods."""
_MAX_PROBLEMS = 20
"""Of one text that are reported; each is logged, and compared with what was reported before."""
_MAX_MESSAGE = 4096
"""Characters of a problem."""
_LISTS = ("List", "PodList")
_ERROR_PATH = re.compile(r"(?P<why>.*) - at `(?:key in )?\$\.?(?P<path>.*)`", re.DOTALL)


class ManifestProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong with a manifest, for the person who wrote it."""

    location: str
    """The path of the file or folder, or the URL."""
    message: str
    document: int = 0
    """Counted from 1; 0 if it is about the whole."""
    pod: str = ""
    """Its namespace and name, as far as they are known."""

    def __str__(self) -> str:
        where = [self.location]
        if self.document:
            where.append(f"document {self.document}")
        if self.pod:
            where.append(f"pod {self.pod}")
        return f"{', '.join(where)}: {self.message}"


class Manifest(msgspec.Struct, frozen=True):
    """What a text says: the pods that can be run, and what is wrong with the rest."""

    pods: tuple[Pod, ...] = ()
    problems: tuple[ManifestProblem, ...] = ()


class _InvalidManifestError(ValueError):
    """A document is no pod that can be run."""


def read_manifest(data: bytes, origin: ManifestOrigin, seen: Time) -> Manifest:
    """All that a text says; `seen` is the time at which it was read."""
    if len(data) > MAX_BYTES:
        return _unreadable(origin, f"it is larger than {MAX_BYTES // 2**20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _unreadable(origin, "it is no text in UTF-8")
    written = split_documents(text)
    if not written:
        return _unreadable(origin, "it is empty; write a Pod, or delete it")
    if len(written) > _MAX_OBJECTS:
        return _unreadable(origin, f"it has more than {_MAX_OBJECTS} documents")
    budget = DecodeBudget()
    found = [
        read
        for number, one in enumerate(written, 1)
        for read in _decode_document(number, one, budget, origin, seen)
    ]
    if len(found) > _MAX_OBJECTS:
        return _unreadable(origin, f"it has more than {_MAX_OBJECTS} objects")
    return Manifest(
        pods=tuple(read for read in found if isinstance(read, Pod)),
        problems=_limit_problems([read for read in found if isinstance(read, ManifestProblem)]),
    )


def _limit_problems(problems: list[ManifestProblem]) -> tuple[ManifestProblem, ...]:
    """The first problems, and how many there are if those are not all."""
    shown = problems[:_MAX_PROBLEMS]
    if len(problems) > len(shown):
        more = f"{len(problems) - len(shown)} more problems are not shown"
        shown.append(ManifestProblem(location=problems[0].location, message=more))
    return tuple(shown)


def _decode_document(
    number: int, raw: ManifestDocument, budget: DecodeBudget, origin: ManifestOrigin, seen: Time
) -> Iterator[Pod | ManifestProblem]:
    """The pods of one document, and what is wrong with it."""

    def problem(why: str, document: Any = None) -> ManifestProblem:
        named, why = _pod_name(document)[:_MAX_MESSAGE], _truncate(why)
        return ManifestProblem(location=origin.location, document=number, pod=named, message=why)

    try:
        documents = list(_items(read_document(raw, budget)))
    except (DocumentError, _InvalidManifestError) as error:
        yield problem(str(error))
        return
    except Exception as error:  # noqa: BLE001 - a manifest must not end the agent
        yield problem(f"it cannot be read, please report this: {error!r}")
        return
    for document in documents:
        try:
            yield _decode_pod(document, origin, seen)
        except _InvalidManifestError as error:
            yield problem(str(error), document)
        except UnicodeEncodeError:
            yield problem("it has half a character: a surrogate without the other", document)
        except Exception as error:  # noqa: BLE001 - a manifest must not end the agent
            yield problem(f"it cannot be read, please report this: {error!r}", document)


def _unreadable(origin: ManifestOrigin, message: str) -> Manifest:
    return Manifest(problems=(ManifestProblem(location=origin.location, message=message),))


def _items(document: Any) -> Iterator[Any]:
    """The objects of a document, which may be a list of them. Raises _RefusedError."""
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
        if wrong := strict_field_errors(document, POD):
            raise _InvalidManifestError(_strict_decoding_error(wrong))
        written = from_document(document, Pod)
        if not value_fits_schema(document, POD) and (beyond := unmarshal_error(document, POD)):
            raise _InvalidManifestError(beyond)
        if not written.metadata.name:
            raise _InvalidManifestError("metadata.name: Required value: name is needed for the pod")
        pod = make_static_pod(
            _with_defaults(written), content_hash(written, origin), origin, seen_at
        )
    except DecodeError as error:
        raise _InvalidManifestError(_wrong_type(error)) from None
    except RecursionError:
        raise _InvalidManifestError("it is nested too deeply") from None
    except OverflowError:
        raise _InvalidManifestError("it has a number that is too large") from None
    _validate(pod, written)
    return pod


def _check_kind(document: Any) -> None:
    if not isinstance(document, dict):
        kind = {list: "a list", str: "a text", bool: "a boolean"}.get(type(document), "a number")
        raise _InvalidManifestError(
            f"it is {kind}; an object of apiVersion v1 and kind Pod is expected"
        )
    if (document.get("apiVersion"), document.get("kind")) != ("v1", "Pod"):
        raise _InvalidManifestError(_wrong_kind(document))


def _wrong_kind(document: dict[str, Any]) -> str:
    told = []
    for key in ("apiVersion", "kind"):
        value = document.get(key)
        told.append(f"{key} is {go_quoted(str(value))}" if value else f"{key} is missing")
    return f"{' and '.join(told)}; only apiVersion v1 and kind Pod can be run from a manifest"


def _with_defaults(pod: Pod) -> Pod:
    document = to_document(pod)
    set_pod_defaults(document["spec"])
    return from_document(document, Pod)


def _validate(pod: Pod, written: Pod) -> None:
    """Raise _RefusedError for what the API server or the kubelet would refuse."""
    causes = [f"{cause.field}: {cause.message}" for cause in validate_new_pod(pod)]
    if CONFIG_MIRROR in (written.metadata.annotations or {}):
        field = f"metadata.annotations[{CONFIG_MIRROR}]"
        causes.append(f"{field}: Forbidden: only the API server's image of a static pod has it")
    if causes:
        told = ", ".join(dict.fromkeys(causes))
        raise _InvalidManifestError(
            f"invalid pod: [{told}]" if len(causes) > 1 else f"invalid pod: {told}"
        )
    if kinds := api_references(pod.spec):
        raise _InvalidManifestError(f"static pods may not reference {', '.join(kinds)}")


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}…"


def _strict_decoding_error(errors: list[str]) -> str:
    return f"strict decoding error: {', '.join(errors)}"


def _wrong_type(error: DecodeError) -> str:
    why = str(error).removeprefix("cannot read a Pod: ")
    if match := _ERROR_PATH.fullmatch(why):
        why = f"{match['path']}: {match['why'][:1].lower()}{match['why'][1:]}"
    return why.replace("`", "").replace(" | null", "").replace("array", "list")


def _pod_name(document: Any) -> str:
    """What is known of the name of a pod that may be no pod."""
    is_pod = isinstance(document, dict) and document.get("kind") == "Pod"
    meta = document.get("metadata") if is_pod else None
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(name, str):
        return ""
    namespace = meta.get("namespace")
    return f"{namespace if isinstance(namespace, str) and namespace else 'default'}/{name}"
