"""``python -m deniable`` is the ``deniable`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the ``deniable`` command; a bare install is told what the command line needs."""
    try:
        from deniable import cli
    except ImportError as error:
        from deniable._optional import missing

        print(f"error: {missing(error, 'The command line')}", file=sys.stderr)
        sys.exit(2)
    cli.main()


if __name__ == "__main__":
    main()
