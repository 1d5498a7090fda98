"""The sentences of a page in German and French: looked up by the English ones, which are the only ones in the code.

``sentences.toml`` holds them. A sentence with numbers is a pattern; what is not found there stays in English.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import NamedTuple

from deniable._check import choice
from deniable.report.words import LANGUAGES

_HOLE = re.compile(r"\{([tv]?)\}")
_WITHIN = r"((?:(?!\. ).)+?)"  # what a number or a text may be: never the end of a sentence
_END = re.compile(r"(?<=[.!?]) (?=\S)")
_NUMBER = re.compile(r"[≤≥≈∈]?\s?-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?:[\s\u00a0]?%)?")


class _Pattern(NamedTuple):
    expression: re.Pattern[str]
    kinds: tuple[str, ...]
    into: dict[str, str]


def translator(language: str) -> Callable[[str], str]:
    """Return the function that turns an English sentence of a report into ``language``: "en", "de" or "fr"."""
    if choice("language", language, LANGUAGES) == "en":
        return lambda text: text
    return lambda text: translate(text, language) or text


def number_in(language: str) -> Callable[[str], str]:
    """Return the function that writes a shown number as the language does: 1 234,5 for 1,234.5 in German and French."""
    return (lambda text: text) if language == "en" else _number


def translate(text: str, language: str) -> str | None:
    """Return a text of one or more sentences in another language; sentences that are not known stay as they are.

    None if none of them is known.
    """
    said = _sentences(text, language)
    if said is None:
        return None
    said = said.replace(" %", "\u00a0%")
    return said if language == "de" else re.sub(r" (?=[:;?!])", "\u00a0", said)


def _sentences(text: str, language: str) -> str | None:
    """The sentences of a text, as they stand in the catalogue."""
    whole = _one(text, language)
    if whole is not None:
        return whole
    parts = _END.split(text)
    if len(parts) == 1 or len(parts) > _MOST_PARTS:
        return None
    said: list[str] = []
    found = False
    start = 0
    while start < len(parts):
        for end in range(len(parts), start, -1):  # the longest run of parts that is one sentence
            one = _one(" ".join(parts[start:end]), language)
            if one is not None:
                break
        found |= one is not None
        said.append(parts[start] if one is None else one)
        start = start + 1 if one is None else end
    return " ".join(said) if found else None


_MOST_PARTS = 40  # the search over runs of parts takes quadratic time


@cache
def _one(text: str, language: str) -> str | None:
    """The translation of one sentence."""
    exact, patterns = _catalogue()
    plain = text.replace("\u00a0", " ")
    if plain in exact:
        return exact[plain][language]
    for pattern in patterns:
        match = pattern.expression.fullmatch(plain)
        if match is None:
            continue
        filled = [_filled(held, kind, language) for held, kind in zip(match.groups(), pattern.kinds, strict=True)]
        if None not in filled:
            return pattern.into[language].format(*filled)
    return None


def _filled(held: str, kind: str, language: str) -> str | None:
    """What stands in a hole; None if it should be translated and cannot be."""
    if kind == "v":
        return held
    if kind == "":
        return _number(held)
    whole = translate(held, language) or _capitalised(held, language)
    if whole is not None:
        return whole
    parts = [_one(part, language) or _capitalised(part, language) for part in re.split(r"[,;] ", held)]
    return None if None in parts else "; ".join(str(part) for part in parts)


def _capitalised(held: str, language: str) -> str | None:
    """A sentence that was put behind a colon: its first letter was made small."""
    found = translate(held[:1].upper() + held[1:], language) if held[:1].islower() else None
    if found is None or language == "de":  # nouns keep their capital
        return found
    return found[:1].lower() + found[1:]


def _number(text: str) -> str:
    if " to " in text and all(_NUMBER.fullmatch(part.strip()) for part in text.split(" to ")):
        return " – ".join(_number(part) for part in text.split(" to "))
    if not _NUMBER.fullmatch(text.strip()):
        return text
    return text.replace(",", "\u202f").replace(".", ",")


@cache
def _catalogue() -> tuple[dict[str, dict[str, str]], tuple[_Pattern, ...]]:
    text = resources.files("deniable.report").joinpath("sentences.toml").read_text(encoding="utf-8")
    exact: dict[str, dict[str, str]] = {}
    patterns: list[tuple[int, _Pattern]] = []
    for entry in tomllib.loads(text)["sentence"]:
        english = entry["en"]
        into = {language: entry[language] for language in LANGUAGES if language != "en"}
        kinds = tuple(_HOLE.findall(english))
        if not kinds:
            exact[english] = into
            continue
        pieces = [re.escape(piece) for piece in _HOLE.split(english)[::2]]
        holes = [_WITHIN if kind == "" else "(.+?)" for kind in kinds]
        expression = "".join(part for pair in zip(pieces, [*holes, ""], strict=True) for part in pair)
        patterns.append((len("".join(pieces)), _Pattern(re.compile(expression, re.DOTALL), kinds, into)))
    patterns.sort(key=lambda item: -item[0])  # the most particular first
    return exact, tuple(pattern for _, pattern in patterns)
