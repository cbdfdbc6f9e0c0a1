"""Read the body of an answer, as much of it as there may be."""

import aiohttp

MAX_ERROR_BYTES = 1 << 20
"""Of an answer that is no success; a Status has some hundred."""


class ResponseTooLargeError(aiohttp.ClientError):
    """A body is larger than it may be."""


def is_success(status: int) -> bool:
    """Whether a request was done. A server may answer with any number."""
    return 200 <= status < 300


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The body, decompressed. Raises TooLargeError, and ends the connection then.

    Of a refusal the beginning is enough: what is more than it may be is not waited for.
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
        raise ResponseTooLargeError(f"the answer has more than {max_bytes >> 20} MiB")
    return body[:max_bytes]


async def _read_up_to(content: aiohttp.StreamReader, max_bytes: int) -> bytes:
    """All there is, or something longer than it may be."""
    first = await content.readany()
    if content.at_eof():
        return first
    # Grown in place: a body may come byte by byte. Not by `read`, for which aiohttp lifts its own
    # limits: a hundred kilobytes of gzip may be a hundred megabytes.
    body = bytearray(first)
    while len(body) <= max_bytes and (part := await content.readany()):
        body += part
    return bytes(body)
