"""``deniable doctor``: what a bug report needs, and whether known answers come out on this machine."""

from __future__ import annotations

from deniable._files import to_json
from deniable.cli import _options as options
from deniable.cli._app import FINE, MISSED, command, suggest


@command("deniable doctor", "deniable doctor --json")
def doctor(as_json: options.JsonFlag = False) -> int:
    """Print versions and known answers, for a bug report.

    Exit code 1 if one is wrong on this machine.
    """
    from deniable._doctor import diagnose

    found = diagnose()
    print(to_json(found) if as_json else "\n".join(found.lines()))
    if found.fine and not as_json:
        suggest("train", "breast-cancer", "--advantage", "0.1", "--report", "report.html")
    return FINE if found.fine else MISSED
