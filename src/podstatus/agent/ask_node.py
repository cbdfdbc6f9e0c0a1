"""What the commands ask the running agent itself, at its own port."""

import http.client
import ssl
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from podstatus.agent.ask_server import CannotAskError, running_endpoints
from podstatus.agent.root_dir import Endpoints
from podstatus.apiserver.reading import text_at, value_at
from podstatus.client.kubeconfig import Pem
from podstatus.client.tls import Loaded, UnusableTlsError, tls_context
from podstatus.kube.codec import DecodeError, from_document
from podstatus.kube.pod import Pod

_ANSWER_SECONDS = 10.0
"""For a connection and the head of an answer. What follows may take as long as it likes."""
_PIECE = 65536
_LONGEST_REFUSAL = 4096


class NodePort:
    """The agent, by what it tells in `endpoints.json`. All methods raise CannotAskError."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    def find_pod(self, namespace: str, name: str) -> Pod:
        """A pod of this node, also one that the API server does not know (any more)."""
        try:
            listed = msgspec.json.decode(b"".join(self._ask("/pods", {})))
            for document in value_at(listed, "items") or ():
                found = text_at(document, "metadata", "namespace")
                if (found, text_at(document, "metadata", "name")) == (namespace, name):
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
        return self._ask(f"/containerLogs/{path}", query)

    def _ask(self, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
        connection = self._connection()
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            connection.request("GET", target, headers=self._headers())
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                told = answer.read(_LONGEST_REFUSAL).decode(errors="backslashreplace").strip()
                raise CannotAskError(told or f"the agent answered {answer.status} {answer.reason}")
            if connection.sock is not None:
                connection.sock.settimeout(None)
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
            raise CannotAskError("the agent serves no logs; start it with a --port")
        return http.client.HTTPSConnection(
            url.hostname, url.port, timeout=_ANSWER_SECONDS, context=self._tls()
        )

    def _tls(self) -> ssl.SSLContext:
        path = self._endpoints.agent_certificate
        try:
            pem = Pem(field="certificate of the agent", path=path)
            return tls_context(Loaded(pem, Path(path).read_bytes()), None, insecure=False)
        except OSError as error:
            raise CannotAskError(f"cannot read the certificate of the agent: {error}") from error
        except UnusableTlsError as error:
            raise CannotAskError(str(error)) from error

    def _headers(self) -> dict[str, str]:
        token = self._endpoints.token
        return {"Authorization": f"Bearer {token}"} if token else {}


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
