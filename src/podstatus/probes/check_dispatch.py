"""Run the check of a probe: exec, httpGet, tcpSocket or grpc.

Upstream: runProbe, pkg/kubelet/prober/prober.go v1.36.4.
"""

from podstatus.base.clock import Clock
from podstatus.probes.check_exec import check_exec, probe_command
from podstatus.probes.check_grpc import check_grpc
from podstatus.probes.check_http import check_http
from podstatus.probes.check_tcp import check_tcp
from podstatus.probes.decide.check_result import CheckError, CheckResult
from podstatus.probes.decide.http_target import BadTargetError, http_target, resolve_container_port
from podstatus.probes.decide.targets import ProbeTarget
from podstatus.probes.decide.thresholds import probe_settings
from podstatus.probes.loop_lag import with_lag_check
from podstatus.probes.resolver import HostResolver
from podstatus.runtime.port import Runtime


class ProbeChecker:
    """Runs checks; exec checks go through the runtime."""

    def __init__(self, runtime: Runtime, *, clock: Clock) -> None:
        self._runtime = runtime
        self._clock = clock
        self._resolver = HostResolver()

    async def __call__(self, target: ProbeTarget) -> CheckResult:
        """Check once. Raises CheckError if the result is unknown."""
        try:
            return await self._check(target)
        except BadTargetError as error:
            raise CheckError(str(error)) from error

    async def _check(self, target: ProbeTarget) -> CheckResult:
        probe, container, seconds = (
            target.probe,
            target.container,
            probe_settings(target.probe).timeout,
        )
        if probe.exec is not None:
            return await check_exec(
                self._runtime,
                target.key.uid,
                target.key.container_id,
                probe_command(probe.exec, container),
                seconds=seconds,
                clock=self._clock,
            )
        if probe.http_get is not None:
            request = http_target(probe.http_get, container, pod_ip=target.pod_ip)
            return await with_lag_check(
                check_http(request, seconds=seconds, resolver=self._resolver), seconds=seconds
            )
        if probe.tcp_socket is not None:
            port = resolve_container_port(probe.tcp_socket.port, container)
            host = _require_host(probe.tcp_socket.host or target.pod_ip)
            return await with_lag_check(
                check_tcp(host, port, seconds=seconds, resolver=self._resolver), seconds=seconds
            )
        if probe.grpc is not None:
            port, host = (
                resolve_container_port(probe.grpc.port, container),
                _require_host(target.pod_ip),
            )
            return await with_lag_check(
                check_grpc(host, port, probe.grpc.service or "", seconds=seconds), seconds=seconds
            )
        raise CheckError(
            f"missing probe handler for {target.pod.name}_{target.pod.namespace}"
            f"({target.pod.uid}):{container.name}; set exec, httpGet, tcpSocket or grpc"
        )


def _require_host(host: str) -> str:
    """The host. Raises BadTargetError if the pod has no IP; upstream probes the node instead."""
    if not host:
        raise BadTargetError("the pod has no IP address yet")
    return host
