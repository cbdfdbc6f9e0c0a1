"""Access to an API server for tests: URL, CA certificate, token, and a plain client."""

import http.client
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from podstatus.apiserver.pki.certificates import CA_CERTIFICATE
from podstatus.apiserver.pki.token_and_kubeconfig import ENDPOINTS, KUBECONFIG

Document = dict[str, Any]

TIMEOUT_SECONDS = 30.0
"""Timeout of requests; a test that waits longer has failed."""


class ServerAccess:
    """Credentials for a server, and a plain client for occasional requests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / KUBECONFIG
        self.authority = folder / CA_CERTIFICATE
        """The CA certificate of the server, PEM."""
        endpoints = msgspec.json.decode((folder / ENDPOINTS).read_bytes())
        self.url: str = endpoints["apiserver"]
        self.token: str = endpoints["token"]

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Send a request; return status code and JSON body. Raises OSError, HTTPException."""
        connection = self.connect()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        data = None if body is None else msgspec.json.encode(body)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return response.status, msgspec.json.decode(response.read() or b"null")
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection that trusts the server's CA."""
        context = ssl.create_default_context(cafile=str(self.authority))
        url = urlsplit(self.url)
        return http.client.HTTPSConnection(
            url.hostname or "", url.port, context=context, timeout=TIMEOUT_SECONDS
        )
