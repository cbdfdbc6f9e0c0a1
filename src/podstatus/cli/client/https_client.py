"""The HTTPS client for a running agent."""

import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.base.msgspec_json import decode_json
from podstatus.cli.client.request_errors import NoAnswerError, NotFoundError, RequestError
from podstatus.cli.client.running_agent import running_endpoints
from podstatus.cli.program import (
    describe_pod_command,
    suggested_command,
    timeline_command,
)
from podstatus.client.auth.tls import UnusableTlsError, authority_context
from podstatus.client.kubeconfig.model import Pem
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.unstructured import nested_list, nested_str
from podstatus.workers.shutdown.progress import ShutdownProgress

_RESPONSE_TIMEOUT_SECONDS = 10.0
"""Timeout of the connection and of the response headers; the body has none."""
_CHUNK_BYTES = 65536
_MAX_ERROR_BYTES = 4096
_RESULTS = ("[+]", "[-]")
"""How `/healthz` begins the result of a check."""


class AgentClient:
    """A client for the agent of an `endpoints.json`. All methods raise RequestError."""

    def __init__(
        self, endpoints: AgentEndpoints, *, timeout: float = _RESPONSE_TIMEOUT_SECONDS
    ) -> None:
        """`timeout`: of the connection and of the response headers, in seconds."""
        self._endpoints = endpoints
        self._timeout = timeout

    @property
    def is_observer(self) -> bool:
        """True if the process is a cluster observer, not a node."""
        return self._endpoints.observes

    @property
    def node(self) -> str:
        """Name of the node; empty for an observer."""
        return self._endpoints.node

    @property
    def url(self) -> str:
        """URL of the agent's HTTPS server."""
        return self._endpoints.agent

    def pods(self, namespace: str | None) -> list[dict[str, Any]]:
        """Return the pods of the node in a namespace, None for all, sorted by name."""
        try:
            body = decode_json(b"".join(self.request("/pods", {})), dict[str, Any])
        except msgspec.DecodeError as error:
            raise RequestError(f"cannot decode the pods of the agent: {error}") from error
        pods = sorted(nested_list(body, "items"), key=_names)
        return [pod for pod in pods if namespace in (None, _names(pod)[0])]

    def get_pod(self, namespace: str, name: str) -> Pod:
        """Return a pod of the node, even if the API server does not have it."""
        if self.is_observer:
            raise RequestError("a cluster observer runs no pods; use kubectl logs or kubectl exec")
        try:
            for document in self.pods(namespace):
                if _names(document)[1] == name:
                    return from_document(document, Pod)
        except DecodeError as error:
            raise RequestError(f"cannot decode the pods of the agent: {error}") from error
        unbound = f"no pod {name!r} in namespace {namespace} is bound to node {self.node}"
        describe = describe_pod_command(namespace, name)
        if self.has_history(namespace, name):
            timeline = timeline_command(namespace, name)
            raise RequestError(
                f"{unbound}; to see what happened to an earlier one: {timeline}; to see why a new "
                f"one is not bound: {describe}"
            )
        raise RequestError(
            f"{unbound}; to see why: {describe}; to see all pods: "
            f"{suggested_command('get pods -A -o wide')}; for pods of other nodes use kubectl"
        )

    def has_history(self, namespace: str, name: str) -> bool:
        """Return whether the history has a pod of this name; False if it cannot be read."""
        path = f"/v1/pods/{quote(namespace, safe='')}/{quote(name, safe='')}/timeline"
        try:
            body = decode_json(b"".join(self.request(path, {"limit": "1"})), dict[str, Any])
        except (RequestError, msgspec.DecodeError):
            return False
        return bool(nested_list(body, "transitions"))

    def logs(
        self, namespace: str, pod: str, container: str, query: Mapping[str, str]
    ) -> Iterator[bytes]:
        """Yield the log of a container in chunks, as they arrive."""
        path = "/".join(quote(part, safe="") for part in (namespace, pod, container))
        return self.request(f"/containerLogs/{path}", query)

    def health_checks(self) -> dict[str, str]:
        """Return the reason of failure of each health check by name; empty: it passes."""
        try:
            text = b"".join(self.request("/healthz", {"verbose": "1"})).decode(errors="replace")
        except RequestError as error:
            text = str(error)
            if not text.startswith(_RESULTS):
                raise
        results = [line[3:].partition(" ") for line in text.splitlines() if line[:3] in _RESULTS]
        return {name: rest.partition("failed: ")[2] for name, _, rest in results}

    def begin_drain(self) -> ShutdownProgress:
        """Start to drain the node."""
        return self._drain("POST")

    def cancel_drain(self) -> ShutdownProgress:
        """Cancel a drain; the node accepts pods again."""
        return self._drain("DELETE")

    def drain_progress(self) -> ShutdownProgress:
        """Return the progress of the drain."""
        return self._drain("GET")

    def _drain(self, method: str) -> ShutdownProgress:
        if self.is_observer:
            raise RequestError(
                "a cluster observer has no pods to drain; "
                "for a node of its cluster: kubectl drain NODE"
            )
        body = b"".join(self.request("/drain", {}, method))
        try:
            return decode_json(body, ShutdownProgress)
        except msgspec.DecodeError as error:
            raise RequestError(f"cannot decode the drain progress: {error}") from error

    def request(
        self,
        path: str,
        query: Mapping[str, str],
        method: str = "GET",
        *,
        idle_timeout: float | None = None,
    ) -> Iterator[bytes]:
        """Send a request and yield the body in chunks, as they arrive.

        `idle_timeout`: maximum seconds between two chunks; None: no timeout. Raises NotFoundError
        for a 404, NoAnswerError after a timeout, RequestError for every other failure.
        """
        connection = self._connection()
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            connection.request(method, target, headers=self.headers())
            # After a response with `Connection: close` the connection drops its socket.
            socket = connection.sock
            response = connection.getresponse()
            if response.status != HTTPStatus.OK:
                raise _error_from_response(response)
            socket.settimeout(idle_timeout)
            yield from _read_chunks(response, self._endpoints.agent)
        except TimeoutError as error:
            raise NoAnswerError(
                f"the agent at {self._endpoints.agent} does not answer: it hangs or is overloaded"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise RequestError(
                f"request to the agent at {self._endpoints.agent} failed: {reason.lower()}"
            ) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        url = urlsplit(self._endpoints.agent)
        if url.scheme != "https" or not url.hostname or not self._endpoints.agent_certificate:
            raise RequestError("the agent has no HTTPS server; restart it with a --port")
        return http.client.HTTPSConnection(
            url.hostname, url.port, timeout=self._timeout, context=self.tls_context()
        )

    def tls_context(self) -> ssl.SSLContext:
        """Return a TLS context that trusts the certificate of this agent only."""
        pem = Pem(field="certificate of the agent", path=self._endpoints.agent_certificate)
        try:
            return authority_context(pem)
        except UnusableTlsError as error:
            raise RequestError(str(error)) from error

    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request."""
        token = self._endpoints.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def _names(pod: dict[str, Any]) -> tuple[str, str]:
    return nested_str(pod, "metadata", "namespace"), nested_str(pod, "metadata", "name")


def _error_from_response(response: http.client.HTTPResponse) -> RequestError:
    """The error with the body of the response: plain text, or the message of a `v1.Status`."""
    body = response.read(_MAX_ERROR_BYTES)
    message = body.decode(errors="backslashreplace").strip()
    with suppress(msgspec.DecodeError):
        message = nested_str(decode_json(body, dict[str, Any]), "message") or message
    kind = NotFoundError if response.status == HTTPStatus.NOT_FOUND else RequestError
    return kind(message or f"the agent answered {response.status} {response.reason}")


def _read_chunks(response: http.client.HTTPResponse, agent: str) -> Iterator[bytes]:
    try:
        while chunk := response.read1(_CHUNK_BYTES):
            yield chunk
    except (ConnectionError, ssl.SSLError, http.client.HTTPException) as error:
        raise RequestError(
            f"the response of the agent at {agent} is incomplete; the agent may have stopped. "
            "Retry, or see logs/podstatus.log in its root directory"
        ) from error


def find_agent(
    root_dir: Path | None,
    environment: Mapping[str, str],
    *,
    timeout: float = _RESPONSE_TIMEOUT_SECONDS,
) -> AgentClient:
    """Return a client for the agent that runs in the root directory. Raises RequestError."""
    return AgentClient(running_endpoints(root_dir, environment), timeout=timeout)
