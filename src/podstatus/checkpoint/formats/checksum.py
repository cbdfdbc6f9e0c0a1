"""The checksum of a checkpoint file."""

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193


def fnv1a_32(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash, the checksum of checkpoints."""
    checksum = _FNV_OFFSET
    for byte in data:
        checksum = (checksum ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return checksum
