"""Convert errors of the HTTP library to `UnavailableError`, with a message that says what to do."""

import os
import socket
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp

from podstatus.kube.api_errors import UnavailableError


def transport_error(
    action: str, server: str, source: str, error: Exception, redact: Callable[[str], str] = str
) -> UnavailableError:
    """Return the UnavailableError; `redact` removes secrets from text that the server sent."""
    problem, advice = _describe(server, source, error)
    cause = f" ({redact(transport_cause(error))})" if not isinstance(error, TimeoutError) else ""
    return UnavailableError(f"{action}: {problem}{cause}; {advice}")


def not_an_api_server(action: str, server: str, source: str) -> UnavailableError:
    """Return the error for a response that is a web page."""
    return UnavailableError(
        f"{action}: {server} returned a web page, it is not an API server; "
        f"check the server of {source}: the host and the port"
    )


def _describe(server: str, source: str, error: Exception) -> tuple[str, str]:
    """Return the problem and the advice."""
    setting = f"the server of {source}"
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return "the proxy failed or refused", f"check proxy-url of {source}, and HTTPS_PROXY"
        case aiohttp.ClientConnectorDNSError():
            host = urlsplit(server).hostname
            return f"cannot resolve {host}", f"check {setting}, and DNS"
        case aiohttp.ClientConnectorCertificateError():
            return _certificate_error(source, transport_cause(error))
        case TimeoutError():
            return f"timeout waiting for {server}", f"check that it runs, and {setting}"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            advice = f"check that it uses TLS, and the client certificate of {source}"
            return f"TLS failed with {server}", advice
        case aiohttp.ClientConnectorError():
            return f"cannot connect to {server}", f"check that it runs, and {setting}"
        case aiohttp.ClientResponseError():
            return f"invalid HTTP from {server}", f"check {setting}: http or https, and the port"
        case aiohttp.ServerDisconnectedError() if server.startswith("http:"):
            return f"{server} closed the connection", f"check {setting}: is it https?"
        case aiohttp.ClientPayloadError():
            return f"the connection to {server} was cut", "try again"
    return f"the connection to {server} broke", "try again"


def _certificate_error(source: str, reason: str) -> tuple[str, str]:
    if "expired" in reason:
        return "the server's certificate has expired", "renew it, or correct this machine's clock"
    if "not yet valid" in reason:
        return "the server's certificate is not valid yet", "correct this machine's clock"
    if "mismatch" in reason or "not valid for" in reason:
        advice = f"check the server of {source}, or set tls-server-name there"
        return "the server's certificate is for another name", advice
    advice = f"check certificate-authority in {source}"
    return "the server's certificate is signed by an unknown authority", advice


def transport_cause(error: BaseException) -> str:
    """Return the innermost reason, in few words."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            inner: BaseException = error.certificate_error
        case aiohttp.ClientConnectorError():
            inner = error.os_error
        case _:
            inner = error
    match inner:
        case ssl.SSLCertVerificationError():
            reason = inner.verify_message
        case aiohttp.ClientPayloadError():
            reason = "in the middle of a response"
        case aiohttp.ClientResponseError():
            # Its text contains the URL, and a proxy's URL may contain a password.
            reason = f"{inner.status} {inner.message}"
        case ssl.SSLError():
            reason = (inner.reason or "handshake failed").replace("_", " ")
        case socket.gaierror():
            reason = inner.strerror or "lookup failed"
        case OSError() if inner.errno:
            reason = os.strerror(inner.errno)
        case OSError() if inner.strerror:
            reason = inner.strerror
        case _:
            reason = str(inner) or type(inner).__name__
    return reason.splitlines()[0][:120].rstrip(".").lower()
