"""Options of logs, exec and attach: validation, and translation to kubelet queries.

Upstream: pkg/registry/core/pod/strategy.go and rest/log.go v1.36.4; ValidatePodLogOptions,
pkg/apis/core/validation/validation.go.
"""

from collections.abc import Iterator
from urllib.parse import quote, urlencode

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import HttpRequest, require_int64
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding import channel_frames
from podstatus.kube.scalars.time import Time, TimeError
from podstatus.kube.unstructured import nested_list, nested_str
from podstatus.kube.validation.field_errors import (
    FieldError,
    forbidden,
    invalid_value,
    non_negative,
)

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_LOG_FLAGS = ("follow", "previous", "timestamps")
_STREAM_FLAGS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""The API's parameter names, and the kubelet's."""
_SINCE_CONFLICT = "at most one of `sinceTime` or `sinceSeconds` may be specified"
_NOT_POSITIVE = "must be greater than 0"


def log_query(request: HttpRequest, name: str) -> str:
    """Return the kubelet's query for a log request. Raises StatusError (400 or 422)."""
    options = {flag: "true" for flag in _LOG_FLAGS if request.flag(flag)}
    numbers = _int_params(request)
    since = _since_time(request)
    causes = _validate_log_options(numbers, since)
    if "stream" in request.query:
        # Feature gate PodLogsQuerySplitStreams, off in v1.36.
        causes.append(forbidden("stream", "may not be specified"))
    if causes:
        raise errors.invalid("PodLogOptions", name, causes)
    options |= {key: str(number) for key, number in numbers.items()}
    if since:
        options["sinceTime"] = since
    return urlencode(sorted(options.items()))


def stream_query(request: HttpRequest) -> str:
    """Return the kubelet's query for exec or attach."""
    flags = [(name, "1") for flag, name in _STREAM_FLAGS.items() if request.flag(flag)]
    commands = [("command", word) for word in request.values("command")]
    return urlencode(sorted([*flags, *commands], key=lambda pair: pair[0]))


def container_path(verb: str, pod: Document, container: str) -> str:
    """Return the kubelet's path, like `/exec/default/web/main`. Raises StatusError (400)."""
    namespace, name = nested_str(pod, "metadata", "namespace"), nested_str(pod, "metadata", "name")
    return "/" + "/".join(map(quote, (verb, namespace, name, choose_container(pod, container))))


def choose_container(pod: Document, container: str) -> str:
    """Return the requested container, or the only one. Raises StatusError (400)."""
    name = nested_str(pod, "metadata", "name")
    names = list(_container_names(pod))
    if container:
        if container not in names:
            raise errors.bad_request(f"container {container} is not valid for pod {name}")
        return container
    containers = nested_list(pod, "spec", "containers")
    if len(containers) == 1:
        return nested_str(containers[0], "name")
    message = f"a container name must be specified for pod {name}"
    choice = f", choose one of: [{' '.join(names)}]" if containers else ""
    raise errors.bad_request(message + choice)


def choose_protocol(request: HttpRequest) -> str:
    """Return the WebSocket subprotocol to use. Raises StatusError (400)."""
    if not request.upgrade:
        raise errors.bad_request("Upgrade request required")
    if request.upgrade.lower() != "websocket":
        raise errors.bad_request(
            f"exec and attach require WebSocket, not {request.upgrade[:40]}; use kubectl 1.31 "
            "or newer, or 1.29 and 1.30 with KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true"
        )
    protocol = channel_frames.choose_protocol(request.protocols)
    if protocol is None:
        supported = ", ".join(channel_frames.PROTOCOLS)
        raise errors.bad_request(f"unsupported WebSocket protocol; use one of {supported}")
    return protocol


def _container_names(pod: Document) -> Iterator[str]:
    for kind in _CONTAINER_LISTS:
        for container in nested_list(pod, "spec", kind):
            yield nested_str(container, "name")


def _int_params(request: HttpRequest) -> dict[str, int]:
    # Unlike in lists, an empty number is invalid.
    names = ("tailLines", "limitBytes", "sinceSeconds")
    return {name: require_int64(request.query[name]) for name in names if name in request.query}


def _since_time(request: HttpRequest) -> str:
    text = request.query.get("sinceTime", "")
    try:
        return (Time.parse(text or None)).wire or ""
    except TimeError as error:
        raise errors.bad_request(str(error)) from error


def _validate_log_options(numbers: dict[str, int], since_time: str) -> list[FieldError]:
    causes = non_negative("tailLines", numbers.get("tailLines", 0))
    causes += _validate_positive("limitBytes", numbers)
    if since_time and "sinceSeconds" in numbers:
        # Upstream reports this without a field name.
        return [*causes, forbidden("[]", _SINCE_CONFLICT)]
    return causes + _validate_positive("sinceSeconds", numbers)


def _validate_positive(name: str, numbers: dict[str, int]) -> list[FieldError]:
    number = numbers.get(name, 1)
    return [invalid_value(name, number, _NOT_POSITIVE)] if number < 1 else []
