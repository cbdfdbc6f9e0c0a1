"""Run an agent until a signal: root directory, API server, node services."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from podstatus.agent.compose.alert_rules import AlertRules, AlertRulesError, load_alert_rules
from podstatus.agent.compose.drain import Drainable, ReportProgress, drain_before_stop, should_drain
from podstatus.agent.compose.kubelet_server import (
    KubeletServerFiles,
    ensure_server_certificate,
    ensure_server_files,
)
from podstatus.agent.daemon.apiserver_process import (
    ApiServerStartError,
    EmbeddedApiServer,
    NodeTrust,
    run_log_rotation,
)
from podstatus.agent.daemon.decide.hang import HealthReport
from podstatus.agent.daemon.endpoints_file import AgentEndpoints, RootDirError
from podstatus.agent.daemon.health_reporter import HealthReporter
from podstatus.agent.daemon.logging_setup import log_to_file
from podstatus.agent.daemon.root_dir import (
    AGENT_FOLDERS,
    RootDir,
    is_disk_full,
    retry_write_endpoints,
    try_write_endpoints,
)
from podstatus.agent.daemon.stdin_eof import call_on_stdin_eof
from podstatus.agent.errors import EXIT_CONFIG, EXIT_FAILURE, AgentError
from podstatus.agent.settings.model import AgentSettings
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.evaluator.ports import EvaluatorError
from podstatus.apiserver.pki.certificates import CA_CERTIFICATE
from podstatus.base.system_clock import SystemClock
from podstatus.base.system_time import wall_clock_ns
from podstatus.client.auth.config import ClientConfig
from podstatus.client.auth.in_cluster_config import in_cluster_config
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.server_url import reachable_host
from podstatus.workers.shutdown.plan import total_seconds

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SECONDS = 4.5
"""Hard-exit deadline: a stop takes less than 5 s, whatever hangs."""


class AgentContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the services of an agent are built from."""

    settings: AgentSettings
    root: RootDir
    access: ClientConfig
    server_files: KubeletServerFiles
    alert_rules: AlertRules | None = None
    """None: alerts are disabled."""
    restart_reason: str = ""
    """How the previous agent died, for an event; empty if it exited cleanly."""


class ListenAddresses(msgspec.Struct, frozen=True, kw_only=True):
    """The URLs that an agent listens on."""

    agent: str = ""
    """URL of the HTTPS server."""
    health: str = ""
    """URL of the health server."""
    observes: bool = False
    """The process is a cluster observer, not a node."""


class RunnableAgent(Protocol):
    """A node agent or a cluster observer."""

    async def run(self, on_serving: Callable[[ListenAddresses], None]) -> None:
        """Run until cancelled; call `on_serving` once it listens. Raises AgentError."""


@runtime_checkable
class ReportsHealth(Protocol):
    """An agent that knows what it waits for, and which of its services have stalled."""

    def not_ready_reason(self) -> str:
        """Why the agent does not do all of its work yet; empty if it does."""

    def stalled_services(self) -> tuple[str, ...]:
        """Services that have stopped although nothing that they need is missing."""


class AgentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the start banner."""

    settings: AgentSettings
    apiserver: str
    agent: str
    kubeconfig: Path | None


class _ApiServer(msgspec.Struct, frozen=True, kw_only=True):
    """The API server, embedded or external."""

    access: ClientConfig
    token: str = ""
    kubeconfig: Path | None = None
    authority: Path | None = None
    child: EmbeddedApiServer | None = None


ErrorT = TypeVar("ErrorT", bound=BaseException)
BuildAgent = Callable[[AgentContext], RunnableAgent]
AnnounceAgent = Callable[[AgentInfo], None]


async def run_agent(
    settings: AgentSettings,
    build: BuildAgent,
    announce: AnnounceAgent,
    *,
    health: HealthReporter | None = None,
    report: ReportProgress = lambda _: None,
    restart_reason: str = "",
    stop_at_eof: bool = False,
    folders: Iterable[str] = AGENT_FOLDERS,
) -> bool:
    """Run an agent until SIGINT, SIGTERM or SIGHUP; a second signal kills the process.

    Returns True if the pods were drained first, see `--on-stop`. `health`: where the agent reports
    its health; None: nowhere. `folders`: subdirectories to create in the root directory. Raises
    AgentError.
    """
    reporter = health or HealthReporter.take({}, SystemClock())
    drained, node = False, _AgentHolder(build, announce)
    with _stop_on_signals() as stop:
        stopped = stop.requested
        if stop_at_eof:
            call_on_stdin_eof(stop.request)

        def report_health() -> None:
            reporter.report_once(node.health(stopping=stopped.is_set()))

        def announce_serving(info: AgentInfo) -> None:
            node.announce(info)
            report_health()  # at once: from now on, silence counts

        try:
            async with asyncio.TaskGroup() as group:
                running = _run(settings, node.build, announce_serving, restart_reason, folders)
                whole = group.create_task(running, name="agent")
                stopping = group.create_task(stopped.wait(), name="stop")
                reporting = group.create_task(reporter.run(report_health), name="health")
                await asyncio.wait({whole, stopping}, return_when=asyncio.FIRST_COMPLETED)
                report_health()
                draining = None if whole.done() else node.drainable()
                if draining is not None and await should_drain(settings):
                    stop.set_deadline(total_seconds(settings.shutdown_periods) + STOP_SECONDS)
                    drained = await drain_before_stop(draining, whole, node.reporting(report))
                    stop.set_deadline(STOP_SECONDS)
                whole.cancel()
                stopping.cancel()
                await asyncio.wait({whole})
                reporting.cancel()
        except BaseExceptionGroup as errors:
            # Not `except*`: Python before 3.11.4 wraps an exception raised there in a group.
            reported, unexpected = errors.split((AgentError, RootDirError))
            if reported is None or unexpected is not None:
                raise
            raise _to_agent_error(_first_error(reported)) from errors
    return drained


class _AgentHolder:
    """Holds the agent that was built: its health is reported, and it is drained before the stop."""

    def __init__(self, build: BuildAgent, announce: AnnounceAgent) -> None:
        self._build = build
        self._announce = announce
        self._agent: object = None
        self._url = ""
        """Where it serves; empty before."""
        self._progress = ""

    def build(self, context: AgentContext) -> RunnableAgent:
        self._agent = agent = self._build(context)
        return agent

    def announce(self, info: AgentInfo) -> None:
        self._url = info.agent
        self._announce(info)

    def drainable(self) -> Drainable | None:
        """The agent, if it is serving and has pods to drain."""
        return self._agent if self._url and isinstance(self._agent, Drainable) else None

    def reporting(self, report: ReportProgress) -> ReportProgress:
        """Let the health have the progress of the drain, too."""

        def report_both(line: str) -> None:
            self._progress = line
            report(line)

        return report_both

    def health(self, *, stopping: bool) -> HealthReport:
        if stopping:
            status = self._progress or "stopping"
            return HealthReport(serving=bool(self._url), stopping=True, status=status)
        if not self._url:
            return HealthReport(status="starting")
        agent = self._agent if isinstance(self._agent, ReportsHealth) else None
        waits_for = agent.not_ready_reason() if agent else ""
        stalled = agent.stalled_services() if agent else ()
        problem = waits_for or "; ".join(stalled)
        return HealthReport(
            serving=True,
            ready=not waits_for,
            status=f"serving {self._url}" + (f"; {problem}" if problem else ""),
            stalled=stalled,
        )


async def _run(
    settings: AgentSettings,
    build: BuildAgent,
    announce: AnnounceAgent,
    restart_reason: str,
    folders: Iterable[str],
) -> None:
    async with AsyncExitStack() as stack:
        root = stack.enter_context(RootDir(settings.root_dir, folders))
        stack.enter_context(log_to_file(root.folder("logs"), settings.v, settings.log_format))
        rules = await stack.enter_async_context(_alert_rules(settings))
        pki = root.folder("pki")
        # Before the embedded API server starts, which trusts it.
        certificate, _ = ensure_server_certificate(settings, pki, wall_clock_ns())
        async with _api_server(settings, root, certificate) as server:
            context = AgentContext(
                settings=settings,
                root=root,
                access=server.access,
                server_files=ensure_server_files(
                    settings,
                    pki,
                    wall_clock_ns(),
                    token=server.token,
                    own_client_ca=server.authority,
                ),
                alert_rules=rules,
                restart_reason=restart_reason,
            )
            await _run_services(context, server, build(context), announce)


async def _run_services(
    context: AgentContext, server: _ApiServer, agent: RunnableAgent, announce: AnnounceAgent
) -> None:
    settings, root = context.settings, context.root

    def serving(where: ListenAddresses) -> None:
        endpoints = _endpoints(context, server, where)
        if not try_write_endpoints(root, endpoints):
            group.create_task(retry_write_endpoints(root, endpoints), name="endpoints")
        announce(
            AgentInfo(
                settings=settings,
                apiserver=server.access.server,
                agent=where.agent or where.health,
                kubeconfig=server.kubeconfig,
            )
        )

    async def run_services() -> None:
        await agent.run(serving)
        raise AgentError("the agent stopped unexpectedly")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(run_services(), name="node")
            if server.child is not None:
                group.create_task(server.child.run(), name="apiserver")
                rotation = run_log_rotation(root.apiserver_log, SystemClock())
                group.create_task(rotation, name="apiserver log")
    finally:
        root.remove_endpoints()


@asynccontextmanager
async def _alert_rules(settings: AgentSettings) -> AsyncIterator[AlertRules | None]:
    """Load the alert rules, None if alerts are disabled. Raises AgentError for invalid files.

    Loading runs in a thread, so a stop can end the evaluator process that it waits for.
    """
    if not settings.alerts:
        yield None
        return
    with BudgetedEvaluator() as evaluator:
        yield await asyncio.to_thread(_load_rules, settings, evaluator)


def _load_rules(settings: AgentSettings, evaluator: BudgetedEvaluator) -> AlertRules:
    try:
        rules = load_alert_rules(settings.alert_rules, evaluator)
    except AlertRulesError as error:
        raise AgentError(str(error), code=EXIT_CONFIG) from error
    except EvaluatorError as error:
        raise AgentError(f"cannot check the alert rules: {error}") from error
    for error_line in rules.errors:
        logger.error("alert rule disabled: error=%s", error_line)
    for warning in rules.warnings:
        logger.warning("alert rule may not work as intended: warning=%s", warning)
    return rules


def _endpoints(
    context: AgentContext, server: _ApiServer, addresses: ListenAddresses
) -> AgentEndpoints:
    files = context.server_files
    return AgentEndpoints(
        apiserver=server.access.server,
        agent=addresses.agent,
        health=addresses.health,
        token=files.token,
        agent_certificate=str(files.certificate),
        kubeconfig="" if server.kubeconfig is None else str(server.kubeconfig),
        certificate_authority="" if server.authority is None else str(server.authority),
        node="" if addresses.observes else context.settings.node_name,
        observes=addresses.observes,
        pid=os.getpid(),
    )


def _to_agent_error(error: BaseException) -> AgentError:
    if isinstance(error, AgentError):
        return error
    return AgentError(str(error), code=EXIT_FAILURE if is_disk_full(error) else EXIT_CONFIG)


def _first_error(errors: BaseExceptionGroup[ErrorT]) -> ErrorT:
    error = errors.exceptions[0]
    return _first_error(error) if isinstance(error, BaseExceptionGroup) else error


@asynccontextmanager
async def _api_server(
    settings: AgentSettings, root: RootDir, certificate: Path
) -> AsyncIterator[_ApiServer]:
    if not settings.embedded:
        yield _external_api_server(settings)
        return
    log, port = root.apiserver_log, settings.apiserver_port
    nodes = NodeTrust(authority=certificate, address=reachable_host(settings.address))
    async with EmbeddedApiServer(
        root.folder("apiserver"), log, port=port, clock=SystemClock(), node_trust=nodes
    ) as child:
        try:
            files = await child.start()
        except ApiServerStartError as error:
            raise AgentError(str(error)) from error
        kubeconfig = root.write_kubeconfig(files.kubeconfig)
        access = kubeconfig_config(kubeconfig, environment={})
        yield _ApiServer(
            access=access,
            token=files.token,
            kubeconfig=kubeconfig,
            authority=root.folder("apiserver") / CA_CERTIFICATE,
            child=child,
        )


def _external_api_server(settings: AgentSettings) -> _ApiServer:
    try:
        if settings.kubeconfig is None:
            return _ApiServer(access=in_cluster_config())
        access = kubeconfig_config(settings.kubeconfig)
    except KubeconfigError as error:
        raise AgentError(str(error), code=EXIT_CONFIG) from error
    return _ApiServer(access=access, kubeconfig=settings.kubeconfig.absolute())


class _StopSignal:
    """A stop request with a deadline, after which the process exits hard."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self._deadline: threading.Timer | None = None

    def request(self) -> None:
        """Request the stop; the next signal kills the process."""
        if self.requested.is_set():
            return
        self.requested.set()
        self.set_deadline(STOP_SECONDS)
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    def set_deadline(self, seconds: float) -> None:
        """Replace the deadline: exit hard in `seconds` from now."""
        self.cancel_deadline()
        self._deadline = threading.Timer(seconds, _force_exit, (seconds,))
        self._deadline.daemon = True
        self._deadline.start()

    def cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()


@contextmanager
def _stop_on_signals() -> Iterator[_StopSignal]:
    stop = _StopSignal()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.request)
    try:
        yield stop
    finally:
        stop.cancel_deadline()


def _force_exit(seconds: float) -> None:
    sys.stderr.write(f"podstatus: did not stop within {seconds:g} s; exiting\n")
    sys.stderr.flush()
    os._exit(EXIT_FAILURE)
