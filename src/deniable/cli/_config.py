"""Settings from a TOML file, for runs that are to be repeated: a table for each command, its options as keys."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deniable._check import InputError

FLAG = "--config"


def expand(arguments: list[str], options_of: Callable[[str], dict[str, list[str]]]) -> list[str]:
    """Replace ``--config FILE`` by the options of the command's table in FILE; what is on the line itself wins.

    A key is an option's long name (``noise-multiplier`` or ``noise_multiplier``); the command's own arguments are the
    list ``arguments``. ``true`` sets a flag, ``false`` unsets it, a list repeats the option. ``options_of`` gives a
    command's options, each with the words that switch it off.
    """
    arguments = [part for word in arguments for part in (word.split("=", 1) if word.startswith(FLAG + "=") else [word])]
    if FLAG not in arguments:
        return arguments
    at = arguments.index(FLAG)
    if at + 1 >= len(arguments):
        raise InputError(f"{FLAG} needs the name of a TOML file")
    command, rest = _command(arguments[:at] + arguments[at + 2 :])
    table = _table(arguments[at + 1], command)
    words: list[str] = []
    if not any(not word.startswith("-") for word in rest[:1]):
        words += [str(word) for word in table.pop("arguments", [])]
    table.pop("arguments", None)
    for key, value in table.items():
        option = "--" + key.replace("_", "-")
        if not any(word == option or word.startswith(option + "=") for word in rest):
            words += _words(option, value, options_of(command))
    return [command, *words, *rest]


def _command(arguments: list[str]) -> tuple[str, list[str]]:
    if not arguments or arguments[0].startswith("-"):
        raise InputError(f"{FLAG} goes after a command: deniable assess {FLAG} run.toml")
    return arguments[0], arguments[1:]


def _table(path: str, command: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(Path(path).read_text())
    except OSError:
        raise InputError(f"{FLAG} {path!r} cannot be read: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{FLAG} {path!r} is not TOML: {error}") from None
    table = content.get(command)
    if not isinstance(table, dict):
        raise InputError(f"{FLAG} {path!r} must have a table [{command}]; it has: {', '.join(content) or 'nothing'}")
    return dict(table)


def _words(option: str, value: Any, known: dict[str, list[str]]) -> list[str]:
    if value is False and option in known:  # an unknown one is left for the parser to refuse
        return known[option][:1]
    if isinstance(value, bool):
        return [option]
    if isinstance(value, list):
        return [word for item in value for word in (option, str(item))]
    return [option, str(value)]
