"""Messages about the runtime itself."""

from podstatus.runtime.cri.api.codec import CriMessage


class CriVersionRequest(CriMessage, frozen=True, kw_only=True):
    version: str = ""


class CriVersionResponse(CriMessage, frozen=True, kw_only=True):
    version: str = ""
    runtime_name: str = ""
    runtime_version: str = ""
    runtime_api_version: str = ""


class CriRuntimeCondition(CriMessage, frozen=True, kw_only=True):
    type: str = ""
    status: bool = False
    reason: str = ""
    message: str = ""


class CriRuntimeStatus(CriMessage, frozen=True, kw_only=True):
    conditions: tuple[CriRuntimeCondition, ...] = ()


class CriStatusRequest(CriMessage, frozen=True, kw_only=True):
    verbose: bool = False


class CriStatusResponse(CriMessage, frozen=True, kw_only=True):
    status: CriRuntimeStatus | None = None
