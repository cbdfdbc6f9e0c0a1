"""Look at what a node needs, here and now; `findings` says what to make of it."""

import os
import resource
import socket
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
from podstatus.alerts.evaluator.ports import EvaluatorError
from podstatus.alerts.evaluator.process import EvaluatorProcess
from podstatus.apiserver.state_dir import StateDirError, lock_holder
from podstatus.base.aio import wall_clock_ns
from podstatus.base.programs import find_program
from podstatus.cli.checks import (
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
from podstatus.client.auth.config import ClientConfig
from podstatus.client.auth.load_config import in_cluster_config, kubeconfig_config
from podstatus.client.errors import KubeconfigError
from podstatus.client.rest.resources import ApiResource
from podstatus.client.rest.transport import Timeouts
from podstatus.client.sync_client import SyncClient
from podstatus.kube.errors import ApiError, GoneError
from podstatus.kube.scalars.time import Time
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from podstatus.runtime.process.sandbox.isolation import (
    BubblewrapUnavailableError,
    Isolation,
    find_bubblewrap,
)

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
    """All that can be said before a start."""
    yield check_python(sys.version_info[:2])
    yield check_packages({name: _version(name) for name in _PACKAGES})
    yield check_clock(Time.from_unix_nanos(wall_clock_ns()))
    folder, runs = _root_dir(settings.root_dir)
    yield folder
    if not runs:
        yield from _ports(settings)
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
    """What is said about it, and whether an agent runs there."""
    try:
        holder = lock_holder(path) if path.is_dir() else None
    except (StateDirError, OSError) as error:
        return Finding("root-dir", PROBLEM, str(error)), False
    if holder is not None:
        told = f"an agent runs in {path} (pid {holder.pid}, since {holder.since})"
        return Finding("root-dir", HINT, told, "a second one needs another --root-dir"), True
    there = _nearest_existing(path)
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        cure = "choose a folder that you may write to, with --root-dir"
        return Finding("root-dir", PROBLEM, f"cannot write to {there}: {why}", cure), False
    new = "" if there == path else ", to be made"
    return Finding("root-dir", OK, f"{path}{new}"), False


def _nearest_existing(path: Path) -> Path:
    """The folder, or what there is of the way to it."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _ports(settings: AgentSettings) -> Iterator[Finding]:
    wanted = [("port", settings.address, settings.port)]
    if settings.healthz_port is not None:
        wanted.append(("healthz-port", settings.healthz_bind_address, settings.healthz_port))
    if settings.embedded:
        wanted.append(("apiserver-port", "127.0.0.1", settings.apiserver_port))
    for flag, host, port in wanted:
        yield _port(flag, host, port)


def _port(flag: str, host: str, port: int) -> Finding:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        zero = "none" if flag == "healthz-port" else "any"
        cure = f"stop what uses it, or pass another --{flag} (0 for {zero})"
        return Finding(flag, PROBLEM, f"cannot listen on {host} port {port}: {why}", cure)
    return Finding(flag, OK, f"{host} port {port} is free" if port else "any")


def _api_server(settings: AgentSettings) -> Iterator[Finding]:
    if settings.embedded:
        yield Finding("api-server", OK, "our own, to be started with the agent")
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
        yield Finding("rights", HINT, "the server does not say what we may do")
    except ApiError as error:
        yield Finding("api-server", PROBLEM, str(error))
    else:
        yield Finding("api-server", OK, f"{access.server} answers")
        yield check_rights(denied, f"the user of {access.source}")


def _denied_requests(client: SyncClient, node: str) -> Iterator[str]:
    for told, asked in _required_access(node):
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answered = msgspec.json.decode(client.create(_REVIEWS, msgspec.json.encode(review)))
        if not (answered.get("status") or {}).get("allowed"):
            yield told


def _required_access(node: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a node asks for, and no more: a node's own user may see nothing else."""
    mine = {"name": node}
    of_mine = {"key": "spec.nodeName", "operator": "In", "values": [node]}
    lease = {"group": "coordination.k8s.io", "namespace": "kube-node-lease", **mine}
    for verb, plural, subresource, more in (
        ("create", "nodes", "", mine),
        ("get", "nodes", "", mine),
        ("patch", "nodes", "status", mine),
        ("list", "pods", "", {"fieldSelector": {"requirements": [of_mine]}}),
        ("watch", "pods", "", {"fieldSelector": {"requirements": [of_mine]}}),
        ("patch", "pods", "status", {}),
        ("delete", "pods", "", {}),
        ("create", "events", "", {}),
        ("patch", "events", "", {}),
        ("create", "leases", "", lease),
        ("update", "leases", "", lease),
    ):
        told = f"{verb} {plural}{'/' + subresource if subresource else ''}"
        yield told, {"verb": verb, "resource": plural, "subresource": subresource, **more}


def _runtime(settings: AgentSettings) -> Iterator[Finding]:
    if settings.runtime != PROCESS:
        yield Finding("runtime", OK, settings.runtime)
        return
    if settings.isolation == Isolation.NONE.value:
        yield Finding("runtime", HINT, "process, pods are not isolated from this machine")
    else:
        yield _bubblewrap(must=settings.isolation == Isolation.BUBBLEWRAP.value)
    try:
        found = find_cgroups(cgroups_name(settings.node_name, settings.root_dir))
    except CgroupsUnavailableError as error:
        yield Finding("limits", HINT, f"not enforced: {error}")
        return
    found.close()
    if why := [found.missing[name] for name in ("cpu", "memory") if name in found.missing]:
        yield Finding("limits", HINT, f"not all enforced: {'; '.join(dict.fromkeys(why))}")
    else:
        yield Finding("limits", OK, "enforced by cgroups")


def _bubblewrap(*, must: bool) -> Finding:
    try:
        found = find_bubblewrap()
    except BubblewrapUnavailableError as error:
        if must:
            return Finding("runtime", PROBLEM, f"process, but {error}")
        return Finding("runtime", HINT, f"process, pods are not isolated: {error}")
    return Finding(
        "runtime", OK, f"process, isolated by bubblewrap {found.version} ({found.program})"
    )


def _count_rules(rules: AlertRules) -> str:
    count = len(rules.rules)
    return f"{count} rules, {count - len(rules.rule_sets)} of them default ones"


def _alert_rules(settings: AgentSettings) -> Iterator[Finding]:
    if not settings.alerts or not settings.alert_rules:
        return
    try:
        with EvaluatorProcess() as evaluator:
            rules = load_alert_rules(settings.alert_rules, evaluator)
    except EvaluatorError as error:
        yield Finding("alert-rules", PROBLEM, str(error), "see whether there is memory left")
        return
    except AlertRulesError as error:
        told = _first_line(str(error).splitlines())
        yield Finding("alert-rules", PROBLEM, told, "mend it, or leave --alert-rules out")
        return
    if rules.errors:
        told = _first_line(rules.errors)
        yield Finding("alert-rules", PROBLEM, told, "mend it: the rule is not asked")
    elif rules.warnings:
        yield Finding(
            "alert-rules", HINT, _first_line(rules.warnings), "it may not do what it seems to"
        )
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
        yield Finding("manifests", HINT, f"{path} is not there", "make the folder; it is awaited")
        return
    try:
        names = [entry.name for entry in path.iterdir()] if path.is_dir() else [path.name]
        readable = all(os.access(path / name, os.R_OK) for name in names if path.is_dir())
    except OSError:
        readable = False
    if not readable or not os.access(path, os.R_OK):
        yield Finding(
            "manifests", PROBLEM, f"not all of {path} can be read", f"chmod -R u+r {path}"
        )
    else:
        shown = [name for name in names if not name.startswith(".")]
        yield Finding("manifests", OK, f"{len(shown)} files in {path}")


def _machine(settings: AgentSettings) -> Iterator[Finding]:
    there = _nearest_existing(settings.root_dir)
    yield check_disk(psutil.disk_usage(str(there)).free, str(there))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield check_files(None if soft == resource.RLIM_INFINITY else soft)
    if most := _max_pids():
        yield check_pids(len(psutil.pids()), most)
    if found := find_program("kubectl"):
        yield Finding("kubectl", OK, found)
    else:
        yield Finding("kubectl", HINT, "not on PATH", "podstatus get and describe do the basics")


def _max_pids() -> int | None:
    """How many processes there may be; None where nobody says."""
    limits = []
    for path in (Path("/proc/sys/kernel/pid_max"), _CGROUPS / "pids.max"):
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # not there, or `max`
            continue
    return min(limits, default=None)
