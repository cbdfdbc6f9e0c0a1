"""Reads the resource usage that a kubelet reports."""

import aiohttp

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.kubelet.address import kubelet_address
from podstatus.apiserver.kubelet.kubelet_client import KubeletClient, read_error_body
from podstatus.apiserver.strategies.base import Document

_SUMMARY = "/stats/summary?only_cpu_and_memory=true"
MAX_SUMMARY_BYTES = 8 * 2**20
"""About 10,000 containers; a node has a few hundred."""


class KubeletStatsReader:
    """Reads the stats summaries of nodes, with the client certificate of this server."""

    def __init__(self, client: KubeletClient) -> None:
        self._client = client

    def check_configured(self) -> None:
        """Raise StatusError (503) unless a CA for nodes is configured."""
        self._client.check_configured()

    async def read(self, node: Document) -> bytes:
        """Return the stats summary of a node, CPU and memory only. Raises StatusError."""
        address = kubelet_address(node, address=self._client.address)
        response = await self._client.get(address, _SUMMARY)
        try:
            if response.status != 200:
                text = await read_error_body(response)
                raise StatusError(response.status, "", text.strip())
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_SUMMARY_BYTES:
                    raise StatusError(500, "", f"more than {MAX_SUMMARY_BYTES} bytes of stats")
        except (aiohttp.ClientError, OSError) as error:
            raise StatusError(500, "", f"reading the stats failed: {error}") from error
        finally:
            response.close()
        return bytes(body)
