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

from podstatus.agent.daemon.root_dir import Endpoints
from podstatus.base.msgspec_json import decode_json
from podstatus.cli.client.api_server import CannotAskError, running_endpoints
from podstatus.client.auth.tls import PemContent, UnusableTlsError, tls_context
from podstatus.client.kubeconfig.model import Pem
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.unstructured import nested_str, nested_value
from podstatus.workers.shutdown.manager import ShutdownProgress

_ANSWER_SECONDS = 10.0
"""For a connection and the head of an answer. What follows may take as long as it likes."""
_PIECE = 65536
_LONGEST_REFUSAL = 4096


class NotThereError(CannotAskError):
    """The agent knows nothing of it."""


class NodePort:
    """The agent, by what it tells in `endpoints.json`. All methods raise CannotAskError."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    @property
    def observes(self) -> bool:
        """Whether it is no node, but looks on at a cluster."""
        return self._endpoints.observes

    def find_pod(self, namespace: str, name: str) -> Pod:
        """A pod of this node, also one that the API server does not know (any more)."""
        if self.observes:
            raise CannotAskError("an observer runs there, which has no logs; use kubectl logs")
        try:
            listed = msgspec.json.decode(b"".join(self.ask("/pods", {})))
            for document in nested_value(listed, "items") or ():
                found = nested_str(document, "metadata", "namespace")
                if (found, nested_str(document, "metadata", "name")) == (namespace, name):
                    return from_document(document, Pod)
        except (DecodeError, msgspec.DecodeError) as error:
            raise CannotAskError(f"the agent's pods cannot be read: {error}") from error
        raise CannotAskError(
            f"no pod {name!r} in namespace {namespace} on node {self._endpoints.node}; "
            "see: podstatus get pods -A -o wide; for pods of other nodes use kubectl logs"
        )

    def logs(
        self, namespace: str, pod: str, container: str, query: Mapping[str, str]
    ) -> Iterator[bytes]:
        """What a container wrote, in pieces, as they come."""
        path = "/".join(quote(part, safe="") for part in (namespace, pod, container))
        return self.ask(f"/containerLogs/{path}", query)

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
        if self.observes:
            raise CannotAskError("an observer runs there, which has no pods to end")
        answer = b"".join(self.ask("/drain", {}, method))
        try:
            return decode_json(answer, ShutdownProgress)
        except msgspec.DecodeError as error:
            raise CannotAskError(
                f"what the agent says of a drain cannot be read: {error}"
            ) from error

    def ask(
        self,
        path: str,
        query: Mapping[str, str],
        method: str = "GET",
        *,
        silence_seconds: float | None = None,
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
                raise _refusal(answer)
            socket.settimeout(silence_seconds)
            yield from _pieces(answer, self._endpoints.agent)
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise CannotAskError(
                f"cannot ask the agent at {self._endpoints.agent}: {why.lower()}"
            ) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        url = urlsplit(self._endpoints.agent)
        if url.scheme != "https" or not url.hostname or not self._endpoints.agent_certificate:
            raise CannotAskError("the agent has no port to ask it at; start it with a --port")
        return http.client.HTTPSConnection(
            url.hostname, url.port, timeout=_ANSWER_SECONDS, context=self._tls()
        )

    def _tls(self) -> ssl.SSLContext:
        path = self._endpoints.agent_certificate
        try:
            pem = Pem(field="certificate of the agent", path=path)
            return tls_context(PemContent(pem, Path(path).read_bytes()), None, insecure=False)
        except OSError as error:
            raise CannotAskError(f"cannot read the certificate of the agent: {error}") from error
        except UnusableTlsError as error:
            raise CannotAskError(str(error)) from error

    def _headers(self) -> dict[str, str]:
        token = self._endpoints.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def _refusal(answer: http.client.HTTPResponse) -> CannotAskError:
    """Why it was refused, in the agent's words: a text, or the message of a `v1.Status`."""
    body = answer.read(_LONGEST_REFUSAL)
    told = body.decode(errors="backslashreplace").strip()
    with suppress(msgspec.DecodeError):
        told = nested_str(decode_json(body, dict[str, Any]), "message") or told
    kind = NotThereError if answer.status == HTTPStatus.NOT_FOUND else CannotAskError
    return kind(told or f"the agent answered {answer.status} {answer.reason}")


def _pieces(answer: http.client.HTTPResponse, agent: str) -> Iterator[bytes]:
    try:
        while piece := answer.read1(_PIECE):
            yield piece
    except (ConnectionError, ssl.SSLError, http.client.HTTPException) as error:
        raise CannotAskError(
            f"the answer of the agent at {agent} broke off, this is not all; has it stopped? Ask "
            "again, or see logs/podstatus.log in its root-dir"
        ) from error


def find_node(root_dir: Path | None, environment: Mapping[str, str]) -> NodePort:
    """The agent that runs in the root-dir. Raises CannotAskError."""
    return NodePort(running_endpoints(root_dir, environment))
