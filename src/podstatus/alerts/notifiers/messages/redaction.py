"""Redact secrets in text from another process, in every encoding in which it may echo them.

A receiver that rejects a request may quote it: the token, the signature, the URL path; verbatim,
percent-encoded, JSON-escaped, as HTML entities, in base64, in hex, in another case, broken into
lines, or truncated. So the text is decoded step by step, every character carries its position in
the original, and each run of characters that also occurs in a secret is replaced.
"""

import base64
import re
from collections.abc import Iterable

REDACTED = "<redacted>"
_GRAM = 8
"""Length of a substring of a secret that is redacted."""
_MAX_PASSES = 4
"""Nested encodings that are decoded."""
_HIDDEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2060-\u206f\ufeff]")
_ESCAPE = re.compile(
    r"%([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})"
    r"|&#[xX]([0-9a-fA-F]{1,6});|&#([0-9]{1,7});|&(amp|lt|gt|quot|apos);|\\(.)",
    re.DOTALL,
)
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_MAX_CODE = 0x10FFFF
_CUT_ESCAPE = re.compile(r"(?:%[0-9a-fA-F]?|\\(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|&#?\w{0,7})$")

_Decoded = list[tuple[str, int, int]]
"""Characters, each with the span of the original text that it was decoded from."""


class Redactor:
    """Redacts the secrets of one request."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """`secrets` as sent; empty ones are ignored."""
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        self._grams = {
            form[at : at + _GRAM] for form in forms for at in range(max(1, len(form) - _GRAM + 1))
        }
        self._lengths = sorted({len(gram) for gram in self._grams})
        self._beginnings = {form[:end] for form in forms for end in range(1, _GRAM)}

    def redact(self, text: str, *, is_cut: bool = False) -> str:
        """Return the text without the secrets. `is_cut`: a secret may continue beyond its end."""
        if not self._grams:
            return text
        text = _CUT_ESCAPE.sub("", text) if is_cut else text
        spans: list[tuple[int, int]] = []
        decoded: _Decoded = [(char, at, at + 1) for at, char in enumerate(text)]
        for _ in range(_MAX_PASSES):
            decoded = [entry for entry in decoded if not _HIDDEN.match(entry[0])]
            spans += self._find_spans(decoded, is_cut=is_cut)
            if (further := _decode(decoded)) is None:
                break
            decoded = further
        return _replace(text, spans)

    def _find_spans(self, decoded: _Decoded, *, is_cut: bool) -> list[tuple[int, int]]:
        plain = "".join(_lower(char) for char, _, _ in decoded)
        spans = [
            (decoded[at][1], decoded[at + length - 1][2])
            for length in self._lengths
            for at in range(len(plain) - length + 1)
            if plain[at : at + length] in self._grams
        ]
        for length in range(min(_GRAM - 1, len(plain)), 0, -1) if is_cut else ():
            if plain[-length:] in self._beginnings:
                spans.append((decoded[-length][1], decoded[-1][2]))
                break
        return spans


def _forms(secret: str) -> Iterable[str]:
    """Yield the encodings of a secret, in lower case, with escapes decoded."""
    raw = secret.encode(errors="replace")
    encoded = [_base64(raw, shift) for shift in range(3)]
    for form in (secret, *encoded, *(it.translate(_URL_SAFE) for it in encoded), raw.hex()):
        decoded: _Decoded | None = [(char, 0, 0) for char in form if not _HIDDEN.match(char)]
        for _ in range(_MAX_PASSES):
            if not decoded:
                break
            yield "".join(_lower(char) for char, _, _ in decoded)
            decoded = _decode(decoded)


_URL_SAFE = str.maketrans("+/", "-_")


def _base64(raw: bytes, shift: int) -> str:
    """Return the part of the base64 text that depends on the secret alone, at this byte offset."""
    text = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
    # The characters at both ends also encode bits of the neighbouring bytes.
    first = (0, 2, 3)[shift]
    last = len(text) if (shift + len(raw)) % 3 == 0 else len(text) - 1
    return text[first:last] if last - first >= _GRAM else ""


def _lower(char: str) -> str:
    """Lower-case a character if the result is one character: positions must not shift."""
    low = char.lower()
    return low if len(low) == 1 else char


def _decode(decoded: _Decoded) -> _Decoded | None:
    """Decode one level of escapes; None if there are none."""
    text = "".join(char for char, _, _ in decoded)
    result: _Decoded = []
    after = 0
    for match in _ESCAPE.finditer(text):
        char = _unescaped(match)
        result += decoded[after : match.start()]
        result.append((char, decoded[match.start()][1], decoded[match.end() - 1][2]))
        after = match.end()
    return None if after == 0 else [*result, *decoded[after:]]


def _unescaped(match: re.Match[str]) -> str:
    percent, unicode, byte, entity_hex, entity, name, escaped = match.groups()
    if name is not None:
        return _ENTITIES[name]
    if escaped is not None:
        return str(escaped)
    digits = percent or unicode or byte or entity_hex
    code = int(entity) if digits is None else int(digits, 16)
    return chr(code) if code <= _MAX_CODE else "\ufffd"


def _replace(text: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    after = 0
    for start, end in _merged(spans):
        parts += (text[after:start], REDACTED)
        after = end
    return "".join((*parts, text[after:]))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
