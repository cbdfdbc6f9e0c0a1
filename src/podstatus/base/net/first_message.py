"""The size of a client's first message, from its first bytes.

A server that waits for the complete message spends nothing on clients that send a part of it.
"""

_TLS_HEADER = 5
_TLS_HANDSHAKE, _TLS_MAJOR = 0x16, 3
_MAX_TLS_RECORD = 2**14
MAX_HEAD_BYTES = 8192
"""Limit for a request without TLS; the parser handles longer ones, with its own limits."""
MAX_PEEK_BYTES = _TLS_HEADER + _MAX_TLS_RECORD


def client_hello_size(start: bytes) -> int | None:
    """Return the size of the first TLS record, or of its header; None if it is no ClientHello."""
    expected = (_TLS_HANDSHAKE, _TLS_MAJOR)
    if any(byte != expected_byte for byte, expected_byte in zip(start, expected, strict=False)):
        return None
    if len(start) < _TLS_HEADER:
        return _TLS_HEADER
    length = int.from_bytes(start[3:_TLS_HEADER], "big")
    return _TLS_HEADER + length if 0 < length <= _MAX_TLS_RECORD else None


def request_head_size(start: bytes) -> int:
    """Return the size of a request head; one more than received while it is incomplete."""
    if len(start) >= MAX_HEAD_BYTES or b"\n\r\n" in start or b"\n\n" in start:
        return len(start)
    return len(start) + 1
