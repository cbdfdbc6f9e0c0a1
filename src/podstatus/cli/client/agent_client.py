"""What the commands ask the running agent itself, at its own port."""

import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from podstatus.agent.daemon.root_dir import AgentEndpoints
from podstatus.base.msgspec_json import decode_json
from podstatus.cli.client.api_server import RequestError, running_endpoints
from podstatus.client.auth.tls import PemContent, UnusableTlsError, tls_context
from podstatus.client.kubeconfig.model import Pem
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.unstructured import nested_str, nested_value
from podstatus.workers.shutdown.manager import ShutdownProgress

_RESPONSE_TIMEOUT_SECONDS = 10.0
"""For a connection and the head of an answer. What follows may take as long as it likes."""
_CHUNK_BYTES = 65536
_MAX_ERROR_BYTES = 4096


class NotFoundError(RequestError):
    """The agent knows nothing of it."""


class AgentClient:
    """The agent, by what it tells in `endpoints.json`. All methods raise CannotAskError."""

    def __init__(self, endpoints: AgentEndpoints) -> None:
        self._endpoints = endpoints

    @property
    def is_observer(self) -> bool:
        """Whether it is no node, but looks on at a cluster."""
        return self._endpoints.observes

    def get_pod(self, namespace: str, name: str) -> Pod:
        """A pod of this node, also one that the API server does not know (any more)."""
        if self.is_observer:
            raise RequestError("an observer runs there, which has no logs; use kubectl logs")
        try:
            listed = msgspec.json.decode(b"".join(self.request("/pods", {})))
            for document in nested_value(listed, "items") or ():
                found = nested_str(document, "metadata", "namespace")
                if (found, nested_str(document, "metadata", "name")) == (namespace, name):
                    return from_document(document, Pod)
        except (DecodeError, msgspec.DecodeError) as error:
            raise RequestError(f"the agent's pods cannot be read: {error}") from error
        raise RequestError(
            f"no pod {name!r} in namespace {namespace} on node {self._endpoints.node}; "
            "see: podstatus get pods -A -o wide; for pods of other nodes use kubectl logs"
        )

    def logs(
        self, namespace: str, pod: str, container: str, query: Mapping[str, str]
    ) -> Iterator[bytes]:
        """What a container wrote, in pieces, as they come."""
        path = "/".join(quote(part, safe="") for part in (namespace, pod, container))
        return self.request(f"/containerLogs/{path}", query)

    def begin_drain(self) -> ShutdownProgress:
        """Have all pods end, and none taken."""
        return self._drain("POST")

    def cancel_drain(self) -> ShutdownProgress:
        """Have pods taken again."""
        return self._drain("DELETE")

    def drain_progress(self) -> ShutdownProgress:
        """How far a drain is."""
        return self._drain("GET")

    def _drain(self, method: str) -> ShutdownProgress:
        if self.is_observer:
            raise RequestError("an observer runs there, which has no pods to end")
        answer = b"".join(self.request("/drain", {}, method))
        try:
            return decode_json(answer, ShutdownProgress)
        except msgspec.DecodeError as error:
            raise RequestError(f"what the agent says of a drain cannot be read: {error}") from error

    def request(
        self,
        path: str,
        query: Mapping[str, str],
        method: str = "GET",
        *,
        idle_timeout: float | None = None,
    ) -> Iterator[bytes]:
        """An answer in pieces, as they come; NotThereError for what it has not.

        It may be silent for so long; None: as long as it likes.
        """
        connection = self._connection()
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            connection.request(method, target, headers=self._headers())
            # The connection forgets its socket with an answer that is its last.
            socket = connection.sock
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                raise _error_from_response(answer)
            socket.settimeout(idle_timeout)
            yield from _read_chunks(answer, self._endpoints.agent)
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise RequestError(
                f"cannot ask the agent at {self._endpoints.agent}: {why.lower()}"
            ) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        url = urlsplit(self._endpoints.agent)
        if url.scheme != "https" or not url.hostname or not self._endpoints.agent_certificate:
            raise RequestError("the agent has no port to ask it at; start it with a --port")
        return http.client.HTTPSConnection(
            url.hostname, url.port, timeout=_RESPONSE_TIMEOUT_SECONDS, context=self._tls()
        )

    def _tls(self) -> ssl.SSLContext:
        path = self._endpoints.agent_certificate
        try:
            pem = Pem(field="certificate of the agent", path=path)
            return tls_context(PemContent(pem, Path(path).read_bytes()), None, insecure=False)
        except OSError as error:
            raise RequestError(f"cannot read the certificate of the agent: {error}") from error
        except UnusableTlsError as error:
            raise RequestError(str(error)) from error

    def _headers(self) -> dict[str, str]:
        token = self._endpoints.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def _error_from_response(response: http.client.HTTPResponse) -> RequestError:
    """Why it was refused, in the agent's words: a text, or the message of a `v1.Status`."""
    body = response.read(_MAX_ERROR_BYTES)
    told = body.decode(errors="backslashreplace").strip()
    with suppress(msgspec.DecodeError):
        told = nested_str(decode_json(body, dict[str, Any]), "message") or told
    kind = NotFoundError if response.status == HTTPStatus.NOT_FOUND else RequestError
    return kind(told or f"the agent answered {response.status} {response.reason}")


def _read_chunks(response: http.client.HTTPResponse, agent: str) -> Iterator[bytes]:
    try:
        while piece := response.read1(_CHUNK_BYTES):
            yield piece
    except (ConnectionError, ssl.SSLError, http.client.HTTPException) as error:
        raise RequestError(
            f"the answer of the agent at {agent} broke off, this is not all; has it stopped? Ask "
            "again, or see logs/podstatus.log in its root-dir"
        ) from error


def find_agent(root_dir: Path | None, environment: Mapping[str, str]) -> AgentClient:
    """The agent that runs in the root-dir. Raises CannotAskError."""
    return AgentClient(running_endpoints(root_dir, environment))
