"""What is meant, perhaps, by an expression that is wrong: what to write instead."""

import re

from podstatus.alerts.fact_table import FACTS

_NO_KEY = re.compile(r'key not found in map : "([^"\\]*)"')
_NO_ELEMENT = re.compile(r"index error: index=(\d+) size=(\d+)")
_MAPS = "|".join(
    re.escape(fact.name)
    for facts in FACTS.values()
    for fact in facts
    if fact.kind == "map(string, string)"
)
_TOKENS = {"=": "==", "&": "&&", "|": "||"}
_TOKEN = re.compile(r"syntax error: token recognition error at: '([=&|])[^=&|]?'$")
_WORDS = {"and": "&&", "or": "||"}
_WORD = re.compile(r"syntax error: mismatched input '(and|or)'")


def failure_told(text: str, like: str, problem: str) -> str:
    """What it says if it fails of one like this: of a key that may be missing, which, and where."""
    if (beyond := _NO_ELEMENT.match(problem)) is not None:
        return (
            f"it fails of {like}: a list of {beyond[2]} has no [{beyond[1]}]; "
            f"ask first: size(…) > {beyond[1]} && …, or use exists()"
        )
    missing = _NO_KEY.match(problem)
    if missing is None:
        return f"it fails of {like}: {problem}"
    key = missing[1]
    found = re.search(
        rf"\b({_MAPS})\s*(?:\.\s*{re.escape(key)}\b|\[\s*([\"']){re.escape(key)}\2\s*\])", text
    )
    if found is None:
        return f"it fails of {like}: {problem}; ask first whether it is there"
    scope, fact = found[1].partition(".")[0], found[1]
    return f'it fails of a {scope} without "{key}" in {fact}; ask first: "{key}" in {fact} && …'


def kind_told(kind: str) -> str:
    """What is wrong with a condition of another type than bool."""
    cure = "; nobody knows before it is asked: write … == true" if kind == "dyn" else ""
    return f"it must be true or false, and is of type {kind}{cure}"


def scope_told(name: str) -> str:
    """In rules of which scope there is a fact that is not known here; empty: in none."""
    scopes = [
        scope
        for scope, facts in FACTS.items()
        if any(name == fact.name or name.startswith(f"{fact.name}.") for fact in facts)
    ]
    return f" here, but in rules with scope {scopes[0]}" if scopes else ""


def syntax_told(message: str) -> str:
    """What CEL writes for a sign or word of other languages."""
    if (token := _TOKEN.match(message)) is not None:
        return f"syntax error: write {_TOKENS[token[1]]}, not {token[1]}"
    if (word := _WORD.match(message)) is not None:
        return f"syntax error: write {_WORDS[word[1]]}, not {word[1]}"
    return message
