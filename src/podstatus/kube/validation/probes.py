"""Validation of the probes and lifecycle hooks of a container.

Upstream: validateProbe, validateHandler, validateLifecycle, pkg/apis/core/validation/
validation.go v1.36.4.
"""

import re
from collections.abc import Iterator

from podstatus.kube.objects.containers import (
    Container,
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Probe,
    SleepAction,
    TCPSocketAction,
)
from podstatus.kube.validation.field_errors import (
    FieldError,
    forbidden,
    in_range,
    invalid_value,
    invalid_values,
    non_negative,
    required,
    unsupported,
)
from podstatus.kube.validation.names import port_name

_HEADER_NAME = re.compile("[-A-Za-z0-9]+")
_NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"

_Action = ExecAction | HTTPGetAction | TCPSocketAction | GRPCAction | SleepAction


def validate_probes_and_hooks(field: str, container: Container, grace: int) -> list[FieldError]:
    errors: list[FieldError] = []
    if container.lifecycle is not None:
        errors += _validate_lifecycle(f"{field}.lifecycle", container.lifecycle, grace)
    for name, probe in _probes(container):
        errors += _validate_probe(f"{field}.{name}", probe, grace)
        if name != "readinessProbe" and probe.success_threshold != 1:
            path = f"{field}.{name}.successThreshold"
            errors.append(invalid_value(path, probe.success_threshold, "must be 1"))
        if name == "readinessProbe" and probe.termination_grace_period_seconds is not None:
            path = f"{field}.{name}.terminationGracePeriodSeconds"
            detail = "must not be set for readinessProbes"
            errors.append(invalid_value(path, probe.termination_grace_period_seconds, detail))
    return errors


def forbid_probes_and_hooks(field: str, container: Container) -> list[FieldError]:
    """Return an error for each probe or hook of an init container that is no sidecar."""
    names = ["lifecycle"] if container.lifecycle is not None else []
    names += [name for name, _ in _probes(container)]
    return [forbidden(f"{field}.{name}", _NOT_FOR_INIT) for name in names]


def _probes(container: Container) -> Iterator[tuple[str, Probe]]:
    for name, probe in (
        ("livenessProbe", container.liveness_probe),
        ("readinessProbe", container.readiness_probe),
        ("startupProbe", container.startup_probe),
    ):
        if probe is not None:
            yield name, probe


def _validate_lifecycle(field: str, lifecycle: Lifecycle, grace: int) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, hook in (("postStart", lifecycle.post_start), ("preStop", lifecycle.pre_stop)):
        if hook is not None:
            errors += _validate_handler(f"{field}.{name}", hook, grace)
    return errors


def _validate_probe(field: str, probe: Probe, grace: int) -> list[FieldError]:
    errors = _validate_handler(field, probe, grace)
    for name, value in (
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ):
        errors += non_negative(f"{field}.{name}", value)
    seconds = probe.termination_grace_period_seconds
    if seconds is not None and seconds <= 0:
        path = f"{field}.terminationGracePeriodSeconds"
        errors.append(invalid_value(path, seconds, "must be greater than 0"))
    return errors


def _validate_handler(
    field: str, handler: Probe | LifecycleHandler, grace: int
) -> list[FieldError]:
    actions = _actions(handler)
    if not actions:
        return [required(field, "must specify a handler type")]
    (name, first), *others = actions
    errors = _validate_action(f"{field}.{name}", first, grace)
    detail = "may not specify more than 1 handler type"
    return errors + [forbidden(f"{field}.{other}", detail) for other, _ in others]


def _actions(handler: Probe | LifecycleHandler) -> list[tuple[str, _Action]]:
    last: tuple[str, _Action | None] = (
        ("grpc", handler.grpc) if isinstance(handler, Probe) else ("sleep", handler.sleep)
    )
    listed: list[tuple[str, _Action | None]] = [
        ("exec", handler.exec),
        ("httpGet", handler.http_get),
        ("tcpSocket", handler.tcp_socket),
        last,
    ]
    return [(name, action) for name, action in listed if action is not None]


def _validate_action(field: str, action: _Action, grace: int) -> list[FieldError]:
    match action:
        case ExecAction():
            return [] if action.command else [required(f"{field}.command")]
        case HTTPGetAction():
            return _validate_http(field, action)
        case SleepAction():
            if 0 <= action.seconds <= grace:
                return []
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            return [invalid_value(field, action.seconds, detail)]
        case _:
            return _validate_port(f"{field}.port", action.port)


def _validate_http(field: str, action: HTTPGetAction) -> list[FieldError]:
    errors = [] if action.path else [required(f"{field}.path")]
    errors += _validate_port(f"{field}.port", action.port)
    if action.scheme not in ("HTTP", "HTTPS"):
        errors.append(unsupported(f"{field}.scheme", action.scheme, ("HTTP", "HTTPS")))
    for header in action.http_headers or ():
        if not _HEADER_NAME.fullmatch(header.name):
            detail = (
                "a valid HTTP header must consist of alphanumeric characters or '-' "
                "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
            )
            errors.append(invalid_value(f"{field}.httpHeaders", header.name, detail))
    return errors


def _validate_port(field: str, port: int | str) -> list[FieldError]:
    if isinstance(port, str):
        return invalid_values(field, port, port_name(port))
    return in_range(field, port, 1, 65535)
