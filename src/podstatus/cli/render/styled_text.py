"""Styled text for a terminal: a line is a sequence of pieces of one style each."""

import msgspec


class Piece(msgspec.Struct, frozen=True):
    """Text in one style: a colour, `bold`, `dim`, or none."""

    text: str
    style: str = ""


Line = tuple[Piece, ...]
