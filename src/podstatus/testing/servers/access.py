"""How tests reach an API server: where it is, whom it trusts, and a plain client."""

import http.client
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from podstatus.apiserver.pki.certificates import CA_CERTIFICATE
from podstatus.apiserver.pki.credentials import ENDPOINTS, KUBECONFIG

Document = dict[str, Any]

TIMEOUT_SECONDS = 30.0
"""After which a test that waits for an answer has gone wrong."""


class ServerAccess:
    """How to reach a server, and a plain client for what tests ask now and then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / KUBECONFIG
        self.authority = folder / CA_CERTIFICATE
        """The certificate that clients have to trust, PEM."""
        endpoints = msgspec.json.decode((folder / ENDPOINTS).read_bytes())
        self.url: str = endpoints["apiserver"]
        self.token: str = endpoints["token"]

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Code and JSON body of an answer. Raises OSError or HTTPException if there is none."""
        connection = self.connect()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        sent = None if body is None else msgspec.json.encode(body)
        try:
            connection.request(method, path, sent, headers)
            response = connection.getresponse()
            return response.status, msgspec.json.decode(response.read() or b"null")
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPSConnection:
        """A connection to the server that trusts its certificate."""
        context = ssl.create_default_context(cafile=str(self.authority))
        where = urlsplit(self.url)
        return http.client.HTTPSConnection(
            where.hostname or "", where.port, context=context, timeout=TIMEOUT_SECONDS
        )
