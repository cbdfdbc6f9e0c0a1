"""Texts of others, as everybody can print and store them."""


def plain_text(text: str, longest: int) -> str:
    """The beginning of a text; what is no character in it becomes a question mark.

    A message of a container that was cut inside of a character ends in lone surrogates, which
    neither JSON nor a database takes.
    """
    text = text[:longest]
    # Python knows this without looking.
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()
