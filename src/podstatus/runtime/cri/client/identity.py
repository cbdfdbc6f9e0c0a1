"""What a container runtime calls itself."""

import msgspec

from podstatus.runtime.cri.api.codec import CODEC
from podstatus.runtime.cri.api.status import CriVersionRequest, CriVersionResponse
from podstatus.runtime.cri.client.channel import OPTIONS, import_grpc, socket_address
from podstatus.runtime.cri.client.errors import CriCallError, call_error
from podstatus.runtime.port import RuntimeDownError

_METHOD = "Version"


class RuntimeIdentity(msgspec.Struct, frozen=True):
    """Name and version of a container runtime."""

    name: str
    """As `containerd`: the scheme of container IDs."""
    version: str


def identify(endpoint: str, *, seconds: float) -> RuntimeIdentity:
    """Ask the runtime at a socket. Blocks: for the start of an agent, which needs the answer.

    Raises RuntimeDownError, EndpointError, GrpcMissingError.
    """
    grpc, address = import_grpc("grpc"), socket_address(endpoint)
    with grpc.insecure_channel(address, options=OPTIONS) as channel:
        call = channel.unary_unary(f"/runtime.v1.RuntimeService/{_METHOD}")
        try:
            body = call(CODEC.encode(CriVersionRequest()), timeout=seconds)
        except grpc.RpcError as failure:
            code, details = failure.code().name, failure.details() or ""
            error = call_error(endpoint, _METHOD, code, details, seconds=seconds)
            if isinstance(error, CriCallError):
                error = RuntimeDownError(f"the container runtime at {endpoint} fails: {error}")
            raise error from failure
    response = CODEC.decode(body, CriVersionResponse)
    return RuntimeIdentity(response.runtime_name, response.runtime_version)
