"""How long the first message of a client is, by its beginning.

A server that waits until all of it is there spends nothing on clients that send half of it.
"""

_TLS_HEADER = 5
_TLS_HANDSHAKE, _TLS_MAJOR = 0x16, 3
_MAX_TLS_RECORD = 2**14
MAX_HEAD_BYTES = 8192
"""Of a request without TLS; a longer one is left to the parser, which has limits of its own."""
MAX_PEEK_BYTES = _TLS_HEADER + _MAX_TLS_RECORD


def client_hello_size(start: bytes) -> int | None:
    """How many bytes the first TLS record has, or its header; None if it is no ClientHello."""
    expected = (_TLS_HANDSHAKE, _TLS_MAJOR)
    if any(byte != wanted for byte, wanted in zip(start, expected, strict=False)):
        return None
    if len(start) < _TLS_HEADER:
        return _TLS_HEADER
    length = int.from_bytes(start[3:_TLS_HEADER], "big")
    return _TLS_HEADER + length if 0 < length <= _MAX_TLS_RECORD else None


def request_head_size(start: bytes) -> int:
    """How many bytes the head of a request has, at least one more as long as it has no end."""
    if len(start) >= MAX_HEAD_BYTES or b"\n\r\n" in start or b"\n\n" in start:
        return len(start)
    return len(start) + 1
