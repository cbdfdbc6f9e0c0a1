"""Dispatch of probes to checks, and their targets."""

from typing import Any

import pytest

from podstatus.kube.objects.containers import GRPCAction, HTTPGetAction, Probe, TCPSocketAction
from podstatus.probes.check_dispatch import ProbeChecker
from podstatus.probes.decide.check_result import CheckError, CheckResult
from podstatus.testing.clock import FakeClock
from tests.probes.probe_targets import target
from tests.support.loopback_servers import HOST, http, raw_server
from tests.support.world_in_memory import TroubledRuntime


def checks() -> ProbeChecker:
    clock = FakeClock()
    return ProbeChecker(TroubledRuntime(clock), clock=clock)


async def test_the_pod_is_asked_by_http_and_by_tcp() -> None:
    async with raw_server(http(200, b"fine")) as server:
        asked = HTTPGetAction(port=server.port, path="/healthz")
        checked = await checks()(target(Probe(http_get=asked)))
        assert checked == CheckResult(success=True, output="fine")
        assert "GET /healthz HTTP/1.1" in server.asked[0]
        assert "User-Agent: kube-probe/1.36" in server.asked[0]
        socket = TCPSocketAction(port=str(server.port))
        assert await checks()(target(Probe(tcp_socket=socket))) == CheckResult(success=True)
        elsewhere = TCPSocketAction(port=server.port, host=HOST)
        assert (await checks()(target(Probe(tcp_socket=elsewhere), pod_ip=""))).success


@pytest.mark.parametrize(
    ("probe", "pod_ip", "why"),
    [
        (Probe(), HOST, r"missing probe handler for p_ns\(p\):app"),
        (Probe(http_get=HTTPGetAction(port="web")), HOST, "port web not found"),
        (Probe(tcp_socket=TCPSocketAction(port=0)), HOST, "invalid port number"),
        (Probe(tcp_socket=TCPSocketAction(port=1)), "", "no IP address"),
        (Probe(http_get=HTTPGetAction(port=1)), "", "no IP address"),
        (Probe(grpc=GRPCAction(port=1)), "", "no IP address"),
        (Probe(grpc=GRPCAction(port=-1)), HOST, "invalid port number"),
    ],
)
async def test_invalid_targets_raise_check_errors(probe: Any, pod_ip: str, why: str) -> None:
    with pytest.raises(CheckError, match=why):
        await checks()(target(probe, pod_ip))
