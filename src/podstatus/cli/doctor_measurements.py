"""Measure what a node needs on this machine; `cli.doctor_checks` judges the measurements."""

import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import psutil

from podstatus.agent.compose.alert_rules import AlertRules, AlertRulesError, load_alert_rules
from podstatus.agent.compose.runtime import cgroups_name
from podstatus.agent.settings.model import AgentSettings
from podstatus.agent.settings.schema.scalars import PROCESS
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.evaluator.ports import EvaluatorError
from podstatus.apiserver.state_dir import LOCK_FILE, StateDirError, lock_holder
from podstatus.base.programs import find_program
from podstatus.base.system_time import wall_clock_ns
from podstatus.cli.actions.external_node import (
    end_command,
    is_external_node,
    recorded_server,
)
from podstatus.cli.client.root_dir_holder import DOWN, WAIT, down_in_progress
from podstatus.cli.doctor_checks import (
    HINT,
    OK,
    PROBLEM,
    Finding,
    check_clock,
    check_disk,
    check_files,
    check_packages,
    check_pids,
    check_python,
    check_rights,
)
from podstatus.cli.program import INSTALL_KUBECTL
from podstatus.cli.start.listen_ports import ListenPort, node_ports
from podstatus.cli.start_command import doctor_command, second_start, start_command
from podstatus.client.auth.config import ClientConfig
from podstatus.client.auth.in_cluster_config import in_cluster_config
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.resources import ApiResource
from podstatus.client.sync_client import SyncClient
from podstatus.kube.api_errors import ApiError, GoneError
from podstatus.kube.scalars.time import Time
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from podstatus.runtime.process.sandbox.isolation import (
    BubblewrapUnavailableError,
    Isolation,
    find_bubblewrap,
)
from podstatus.runtime.process.state.running_pods import running_pods

_PACKAGES = (
    "aiohttp",
    "cel-expr-python",
    "cryptography",
    "psutil",
    "PyYAML",
    "rich",
    "structlog",
    "typer",
)
_REVIEWS = ApiResource("selfsubjectaccessreviews", "authorization.k8s.io", namespaced=False)
_CGROUPS = Path("/sys/fs/cgroup")


def run_checks(settings: AgentSettings) -> Iterator[Finding]:
    """Yield the findings of all checks that are possible before a start."""
    yield check_python(sys.version_info[:2])
    yield check_packages({name: _version(name) for name in _PACKAGES})
    yield check_clock(Time.from_unix_nanos(wall_clock_ns()))
    finding, is_running = _root_dir(settings.root_dir)
    yield finding
    if not is_running:
        yield from map(_port, node_ports(settings))
    yield from _api_server(settings)
    yield from _runtime(settings)
    yield from _manifests(settings)
    yield from _alert_rules(settings)
    yield from _machine(settings)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _root_dir(path: Path) -> tuple[Finding, bool]:
    """Return the finding, and True if an agent runs there."""
    try:
        holder = lock_holder(path) if path.is_dir() else None
    except (StateDirError, OSError) as error:
        return Finding("root-dir", PROBLEM, str(error)), False
    if holder is not None and holder.command == DOWN:
        return Finding("root-dir", HINT, down_in_progress(path, holder), WAIT), True
    if holder is not None:
        message = f"{path} is in use (pid {holder.pid}, since {holder.since})"
        return Finding("root-dir", HINT, message, f"for a second node: {second_start(path)}"), True
    if (path / LOCK_FILE).exists() and os.access(path, os.W_OK):
        return _stopped_node(path), False
    existing = _nearest_existing(path)
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = "pass a writable directory with --root-dir"
        return Finding("root-dir", PROBLEM, f"cannot write to {existing}: {reason}", remedy), False
    suffix = "" if existing == path else " (will be created)"
    return Finding("root-dir", OK, f"{path}{suffix}"), False


def _stopped_node(path: Path) -> Finding:
    start = start_command(path)
    if pods := running_pods(path / "runtime"):
        message = f"{path} has a node that is stopped, and containers of {', '.join(pods)} run"
        end = end_command(path, is_external=is_external_node(path))
        remedy = f"to continue with them: {start}; to end them: {end}"
        return Finding("root-dir", HINT, message, remedy)
    return Finding("root-dir", OK, f"{path} has a node that is stopped", f"to start it: {start}")


def _nearest_existing(path: Path) -> Path:
    """The directory, or its nearest existing parent."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _port(it: ListenPort) -> Finding:
    error = it.error()
    if error is None:
        free = f"{it.host} port {it.port} is free" if it.port else "a free port will be picked"
        return Finding(it.flag, OK, free)
    reason = (error.strerror or str(error)).lower()
    zero = "disables it" if it.setting == "healthz_port" else "picks a free one"
    remedy = f"stop the process that uses it, or pass another --{it.flag} (0 {zero})"
    return Finding(it.flag, PROBLEM, f"cannot listen on {it.host} port {it.port}: {reason}", remedy)


def _api_server(settings: AgentSettings) -> Iterator[Finding]:
    if settings.embedded:
        yield _embedded_server(settings.root_dir)
        return
    try:
        access: ClientConfig = (
            in_cluster_config()
            if settings.kubeconfig is None
            else kubeconfig_config(settings.kubeconfig)
        )
    except KubeconfigError as error:
        yield Finding("api-server", PROBLEM, str(error))
        return
    try:
        with SyncClient(access, timeouts=Timeouts(connect_seconds=3, total_seconds=10)) as client:
            denied = list(_denied_requests(client, settings.node_name))
    except GoneError:
        yield Finding("api-server", OK, f"{access.server} answers")
        yield Finding(
            "permissions", HINT, "unknown: the API server does not support SelfSubjectAccessReview"
        )
    except ApiError as error:
        yield Finding("api-server", PROBLEM, str(error))
    else:
        yield Finding("api-server", OK, f"{access.server} answers")
        yield check_rights(denied, f"the user of {access.source}")


def _embedded_server(root_dir: Path) -> Finding:
    """What is known without a kubeconfig; the node may have been started with one."""
    server = recorded_server(root_dir)
    if server is None or server.embedded:
        return Finding("api-server", OK, "embedded, started by the agent")
    message = f"not checked: the node belongs to the cluster at {server.address}"
    command = doctor_command(root_dir)
    remedy = f"to check it: {command}" if command else "pass the --kubeconfig of its start"
    return Finding("api-server", HINT, message, remedy)


def _denied_requests(client: SyncClient, node: str) -> Iterator[str]:
    for request, attributes in _required_access(node):
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        response = msgspec.json.decode(client.create(_REVIEWS, msgspec.json.encode(review)))
        if not (response.get("status") or {}).get("allowed"):
            yield request


def _required_access(node: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The requests of a node, with their resource attributes.

    Only these: the node authorizer denies a node everything else.
    """
    named = {"name": node}
    on_node = {"key": "spec.nodeName", "operator": "In", "values": [node]}
    lease = {"group": "coordination.k8s.io", "namespace": "kube-node-lease", **named}
    for verb, plural, subresource, more in (
        ("create", "nodes", "", named),
        ("get", "nodes", "", named),
        ("patch", "nodes", "status", named),
        ("list", "pods", "", {"fieldSelector": {"requirements": [on_node]}}),
        ("watch", "pods", "", {"fieldSelector": {"requirements": [on_node]}}),
        ("list", "services", "", {}),
        ("watch", "services", "", {}),
        ("patch", "pods", "status", {}),
        ("delete", "pods", "", {}),
        ("create", "events", "", {}),
        ("patch", "events", "", {}),
        ("create", "leases", "", lease),
        ("update", "leases", "", lease),
    ):
        request = f"{verb} {plural}{'/' + subresource if subresource else ''}"
        yield request, {"verb": verb, "resource": plural, "subresource": subresource, **more}


def _runtime(settings: AgentSettings) -> Iterator[Finding]:
    if settings.runtime != PROCESS:
        yield Finding("runtime", OK, settings.runtime)
        return
    if settings.isolation == Isolation.NONE.value:
        yield Finding("runtime", HINT, "process; pods are not isolated from this machine")
    else:
        yield _bubblewrap(required=settings.isolation == Isolation.BUBBLEWRAP.value)
    try:
        cgroups = find_cgroups(cgroups_name(settings.node_name, settings.root_dir))
    except CgroupsUnavailableError as error:
        yield Finding("limits", HINT, f"not enforced: {error}")
        return
    cgroups.close()
    missing = cgroups.missing
    if problems := [missing[name] for name in ("cpu", "memory") if name in missing]:
        yield Finding("limits", HINT, f"not all enforced: {'; '.join(dict.fromkeys(problems))}")
    else:
        yield Finding("limits", OK, "enforced by cgroups")


def _bubblewrap(*, required: bool) -> Finding:
    try:
        program = find_bubblewrap()
    except BubblewrapUnavailableError as error:
        if required:
            return Finding("runtime", PROBLEM, f"process; cannot isolate pods: {error}")
        return Finding("runtime", HINT, f"process; pods are not isolated: {error}")
    return Finding(
        "runtime",
        OK,
        f"process; pods are isolated by bubblewrap {program.version} ({program.program})",
    )


def _count_rules(rules: AlertRules) -> str:
    count = len(rules.rules)
    return f"{count} rules, {count - len(rules.rule_sets)} of them default rules"


def _alert_rules(settings: AgentSettings) -> Iterator[Finding]:
    if not settings.alerts or not settings.alert_rules:
        return
    try:
        with BudgetedEvaluator() as evaluator:
            rules = load_alert_rules(settings.alert_rules, evaluator)
    except EvaluatorError as error:
        yield Finding("alert-rules", PROBLEM, str(error), "check that enough memory is free")
        return
    except AlertRulesError as error:
        message = _first_line(str(error).splitlines())
        yield Finding("alert-rules", PROBLEM, message, "fix it, or leave --alert-rules out")
        return
    if rules.errors:
        message = _first_line(rules.errors)
        yield Finding("alert-rules", PROBLEM, message, "fix it; the rule is disabled")
    elif rules.warnings:
        message = _first_line(rules.warnings)
        yield Finding("alert-rules", HINT, message, "it may not work as intended")
    else:
        yield Finding("alert-rules", OK, _count_rules(rules))


def _first_line(lines: Sequence[str]) -> str:
    first, *others = lines
    return f"{first} (and {len(others)} more)" if others else first


def _manifests(settings: AgentSettings) -> Iterator[Finding]:
    path = settings.pod_manifest_path
    if path is None:
        return
    if not path.exists():
        yield Finding("manifests", HINT, f"{path} does not exist", "the agent will wait for it")
        return
    try:
        names = [entry.name for entry in path.iterdir()] if path.is_dir() else [path.name]
        readable = all(os.access(path / name, os.R_OK) for name in names if path.is_dir())
    except OSError:
        readable = False
    if not readable or not os.access(path, os.R_OK):
        yield Finding(
            "manifests", PROBLEM, f"cannot read all of {path}", f"run: chmod -R u+r {path}"
        )
    else:
        visible = [name for name in names if not name.startswith(".")]
        yield Finding("manifests", OK, f"{len(visible)} files in {path}")


def _machine(settings: AgentSettings) -> Iterator[Finding]:
    directory = _nearest_existing(settings.root_dir)
    yield check_disk(psutil.disk_usage(str(directory)).free, str(directory))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield check_files(None if soft == resource.RLIM_INFINITY else soft)
    if limit := _max_pids():
        yield check_pids(len(psutil.pids()), limit)
    if kubectl := find_program("kubectl"):
        yield Finding("kubectl", OK, kubectl)
    else:
        yield Finding(
            "kubectl", HINT, "kubectl is not on PATH", f"{INSTALL_KUBECTL}, to create pods"
        )


def _max_pids() -> int | None:
    """The limit of processes of the kernel or the cgroup; None if there is none."""
    limits = []
    for path in (Path("/proc/sys/kernel/pid_max"), _CGROUPS / "pids.max"):
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # the file does not exist, or contains `max`
            continue
    return min(limits, default=None)
