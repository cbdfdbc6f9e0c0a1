"""A blocking client for one-shot commands: a CA and a bearer token, on http.client.

`SyncClient` can do more, but importing aiohttp takes longer than a command with one request.
"""

import http.client
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from podstatus.client.auth.tls import UnusableTlsError, authority_context
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.model import Pem
from podstatus.client.rest.redaction import redact_secrets
from podstatus.client.rest.request import JSON, MAX_LIST_BYTES, MAX_OBJECT_BYTES, with_query
from podstatus.client.rest.resources import ApiResource
from podstatus.client.rest.status_error import read_status, status_error
from podstatus.kube.api_errors import UnavailableError

_USER_AGENT = "podstatus"
_READ_SECONDS = 30.0
"""Maximum time between two parts of a response."""


class TokenClient:
    """Reads and deletes objects of an API server, for use within `with`. Not thread-safe.

    Objects are JSON text. Calls raise the errors of `podstatus.kube.api_errors`. There is no
    renewal of credentials, no proxy and no watch.
    """

    def __init__(
        self,
        server: str,
        *,
        token: str,
        authority: Path,
        connect_seconds: float,
    ) -> None:
        """`authority` is the file of the trusted CA certificates. Raises KubeconfigError."""
        self._server = server
        self._token = token
        self._authority = authority
        url = urlsplit(server)
        self._connection = http.client.HTTPSConnection(
            url.hostname or "", url.port, timeout=connect_seconds, context=_tls_context(authority)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, resource: ApiResource, name: str, *, namespace: str | None = None) -> bytes:
        """Return one object by its name."""
        return self._read(resource.object(name, namespace), MAX_OBJECT_BYTES)

    def list(
        self,
        resource: ApiResource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> bytes:
        """Return a List, or one page of it: at most `limit` objects after `continue_token`."""
        query: Mapping[str, str | int] = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": limit,
            "continue": continue_token,
        }
        return self._read(with_query(resource.collection(namespace), query), MAX_LIST_BYTES)

    def delete(
        self,
        resource: ApiResource,
        name: str,
        *,
        namespace: str | None = None,
        options: bytes | None = None,
    ) -> bytes:
        """Delete an object; `options` is a DeleteOptions with grace period and preconditions."""
        path = resource.object(name, namespace)
        return self._read(path, MAX_OBJECT_BYTES, method="DELETE", body=options)

    def _read(
        self, path: str, max_bytes: int, *, method: str = "GET", body: bytes | None = None
    ) -> bytes:
        action = f"{method} {path.partition('?')[0]}"
        headers = {
            "Accept": JSON,
            "Content-Type": JSON,
            "Authorization": f"Bearer {self._token}",
            "User-Agent": _USER_AGENT,
        }
        try:
            self._connect()
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            answer = response.read(max_bytes + 1)
        except (OSError, http.client.HTTPException) as error:
            raise UnavailableError(f"{action}: {self._describe(error)}") from error
        if len(answer) > max_bytes:
            raise UnavailableError(f"{action}: the response is longer than {max_bytes >> 20} MiB")
        if response.status != HTTPStatus.OK:
            status = read_status(answer, lambda text: redact_secrets(text, (self._token,)))
            retry_after = response.headers.get("Retry-After")
            raise status_error(action, self._server, response.status, status, retry_after)
        return answer

    def _connect(self) -> None:
        """Connect if necessary: a server that hangs is noticed sooner than a slow response."""
        if self._connection.sock is None:
            self._connection.connect()
        connected: socket.socket | None = self._connection.sock
        if connected is not None:
            connected.settimeout(_READ_SECONDS)

    def _describe(self, error: OSError | http.client.HTTPException) -> str:
        match error:
            case ssl.SSLCertVerificationError():
                problem = f"the certificate of {self._server} is refused: {error.verify_message}"
                return f"{problem}; check that {self._authority} is its CA"
            case TimeoutError():
                return f"timeout waiting for {self._server}; check that it runs"
        reason = getattr(error, "strerror", "") or str(error) or type(error).__name__
        return f"no response from {self._server} ({reason.lower()}); check that it runs"


def _tls_context(authority: Path) -> ssl.SSLContext:
    try:
        return authority_context(Pem(field="certificate-authority", path=str(authority)))
    except UnusableTlsError as error:
        raise KubeconfigError(str(error)) from error
