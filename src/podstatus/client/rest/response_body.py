"""Read the body of a response, up to a maximum size."""

import aiohttp

MAX_ERROR_BYTES = 1 << 20
"""Maximum size of an error response; a Status has some hundred bytes."""


class ResponseTooLargeError(aiohttp.ClientError):
    """A response body exceeds the maximum size."""


def is_success(status: int) -> bool:
    """Whether the status code is 2xx; a server may send any number."""
    return 200 <= status < 300


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Return the decompressed body. If it is too large, close the connection and raise
    ResponseTooLargeError.

    An error response that is too large is cut instead: its start is sufficient.
    """
    if not is_success(response.status):
        max_bytes = min(max_bytes, MAX_ERROR_BYTES)
    try:
        body = await _read_up_to(response.content, max_bytes)
    except BaseException:
        response.close()
        raise
    if len(body) <= max_bytes:
        return body
    response.close()
    if is_success(response.status):
        raise ResponseTooLargeError(f"the response has more than {max_bytes >> 20} MiB")
    return body[:max_bytes]


async def _read_up_to(content: aiohttp.StreamReader, max_bytes: int) -> bytes:
    """Return the whole content, or a prefix that is longer than `max_bytes`."""
    first = await content.readany()
    if content.at_eof():
        return first
    # Grown in place: a body may arrive byte by byte. Not with `read`, for which aiohttp lifts its
    # own limits: 100 kB of gzip may expand to 100 MB.
    body = bytearray(first)
    while len(body) <= max_bytes and (part := await content.readany()):
        body += part
    return bytes(body)
