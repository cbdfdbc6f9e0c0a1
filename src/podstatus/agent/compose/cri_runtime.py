"""Build the CRI runtime of `--runtime cri`."""

from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.runtime.cri.client.channel import CriChannel, EndpointError, GrpcMissingError
from podstatus.runtime.cri.client.identity import identify
from podstatus.runtime.cri.client.image_service import ImageService
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.runtime.cri.container_preparer import CriContainerPreparer
from podstatus.runtime.cri.cri_runtime import CriRuntime
from podstatus.runtime.port import RuntimeDownError


def build_cri_runtime(
    settings: AgentSettings, preparer: CriContainerPreparer, clock: Clock
) -> CriRuntime:
    """Build the runtime on the socket of the settings.

    Raises AgentError. If the container runtime does not answer, its exit code lets a supervisor
    try again.
    """
    endpoint, seconds = settings.container_runtime_endpoint, settings.runtime_request_timeout
    try:
        channel = CriChannel(endpoint)
        identity = identify(endpoint, seconds=seconds)
    except EndpointError as error:
        message = f"--container-runtime-endpoint: {error}"
        raise AgentError(message, code=EXIT_CONFIG) from error
    except GrpcMissingError as error:
        raise AgentError(f"--runtime: {error}", code=EXIT_CONFIG) from error
    except RuntimeDownError as error:
        raise AgentError(str(error)) from error
    return CriRuntime(
        RuntimeService(channel, request_seconds=seconds),
        ImageService(channel, request_seconds=seconds),
        preparer,
        identity=identity,
        clock=clock,
        on_close=channel.close,
    )
