"""What happened on the way to a server, in one line that says what to do."""

import os
import socket
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp

from podstatus.kube.errors import UnavailableError


def transport_error(
    action: str, server: str, source: str, error: Exception, redact: Callable[[str], str] = str
) -> UnavailableError:
    """The error of the tree for one of the HTTP library's; that may quote what a server sent."""
    what, advice = _describe(server, source, error)
    cause = f" ({redact(_cause(error))})" if not isinstance(error, TimeoutError) else ""
    return UnavailableError(f"{action}: {what}{cause}; {advice}")


def not_an_api_server(action: str, server: str, source: str) -> UnavailableError:
    """The error for an answer that is a page for people."""
    return UnavailableError(
        f"{action}: what answers at {server} is a web page, no API server; "
        f"check the server of {source}: the host and the port"
    )


def _describe(server: str, source: str, error: Exception) -> tuple[str, str]:
    """What happened, and what to do."""
    named = f"the server of {source}"
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return "the proxy does not let us through", f"check proxy-url of {source}, HTTPS_PROXY"
        case aiohttp.ClientConnectorDNSError():
            host = urlsplit(server).hostname
            return f"no address is known for {host}", f"check {named}, and DNS"
        case aiohttp.ClientConnectorCertificateError():
            return _certificate_error(source, _cause(error))
        case TimeoutError():
            return f"no answer in time from {server}", f"check that it runs, and {named}"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            advice = f"check that it speaks TLS there, and the client certificate of {source}"
            return f"TLS failed with {server}", advice
        case aiohttp.ClientConnectorError():
            return f"cannot connect to {server}", f"check that it runs, and {named}"
        case aiohttp.ClientResponseError():
            return f"no HTTP from {server}", f"check {named}: http or https, and the port"
        case aiohttp.ServerDisconnectedError() if server.startswith("http:"):
            return f"{server} hangs up", f"check {named}: is it https?"
        case aiohttp.ClientPayloadError():
            return f"the connection to {server} was cut", "try again"
    return f"the connection to {server} broke", "try again"


def _certificate_error(source: str, reason: str) -> tuple[str, str]:
    if "expired" in reason:
        return "the server's certificate has expired", "renew it, or set this machine's clock"
    if "not yet valid" in reason:
        return "the server's certificate is not valid yet", "set this machine's clock"
    if "mismatch" in reason or "not valid for" in reason:
        advice = f"check the server of {source}, or set tls-server-name there"
        return "the server's certificate is for another name", advice
    advice = f"check certificate-authority in {source}"
    return "the server's certificate is from an authority that we do not trust", advice


def _cause(error: BaseException) -> str:
    """The innermost thing that the system said, in few words."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            inner: BaseException = error.certificate_error
        case aiohttp.ClientConnectorError():
            inner = error.os_error
        case _:
            inner = error
    match inner:
        case ssl.SSLCertVerificationError():
            told = inner.verify_message
        case aiohttp.ClientPayloadError():
            told = "in the middle of an answer"
        case aiohttp.ClientResponseError():
            # Its text has the URL in it, and a proxy's URL may have a password.
            told = f"{inner.status} {inner.message}"
        case ssl.SSLError():
            told = (inner.reason or "handshake failed").replace("_", " ")
        case socket.gaierror():
            told = inner.strerror or "look-up failed"
        case OSError() if inner.errno:
            told = os.strerror(inner.errno)
        case OSError() if inner.strerror:
            told = inner.strerror
        case _:
            told = str(inner) or type(inner).__name__
    return told.splitlines()[0][:120].rstrip(".").lower()
