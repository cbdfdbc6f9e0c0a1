"""Which of two states of an object is the newer one.

Resource versions of Kubernetes are decimal numbers that grow with every write (KEP-5504 lets
clients rely on it). A server that makes up others is taken at its word: what comes later is newer.
"""

import msgspec

MAX_DIGITS = 40
"""Digits. A number has at most 20; Python refuses to read thousands of them."""


class ResourceVersion(msgspec.Struct, frozen=True):
    """A resource version as it was sent, and its number if it is one."""

    text: str = ""
    number: int | None = None

    @classmethod
    def parse(cls, text: str) -> "ResourceVersion":
        """Read it; anything is one."""
        # isdigit alone takes the digits of all scripts, int underscores and spaces.
        if text.isdigit() and text.isascii() and len(text) <= MAX_DIGITS:
            return cls(text, int(text))
        return cls(text)

    def is_after(self, other: "ResourceVersion") -> bool:
        """Whether it is certainly the newer one."""
        return self.number is not None and other.number is not None and self.number > other.number

    def is_covered_by(self, other: "ResourceVersion") -> bool:
        """Whether it is certainly the same one or an older one."""
        return self.number is not None and other.number is not None and self.number <= other.number


UNKNOWN = ResourceVersion()
"""Before anything was seen."""
