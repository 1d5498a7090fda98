"""The Typer application, the options every command shares, and the exit codes."""

from __future__ import annotations

import _thread
import inspect
import logging
import re
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import is_dataclass
from functools import cache, wraps
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer

from deniable._check import InputError
from deniable._files import write_atomically
from deniable._optional import missing

_Command = TypeVar("_Command", bound=Callable[..., Any])
FINE, MISSED, BAD_INPUT, DEFECT, INTERRUPTED = 0, 1, 2, 70, 130
_SOON = 0.05  # seconds after which a destructor is over

HELP_ALL = "--help-all"
_OF_RUNS = {"run", "runs", "promise"}  # parameters
ON_RUNS = ("bound", "calibrate", "plan", "compare", "assess", "audit", "annex", "verify", "app", "doctor", "examples")
_EVERY_COMMAND = (
    "Exit codes: 0 fine, 1 a verdict is violated or a target was missed, 2 bad input, "
    "70 a defect of deniable, 130 interrupted."
)
_DEFECT = (
    "this is a defect of deniable ({}); nothing was concluded. Please report the command with what --debug shows, "
    "without any data, to the project's issue tracker"
)

app = typer.Typer(
    name="deniable",
    context_settings={"max_content_width": 100, "help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,  # Rich takes longer to import than all the rest
    epilog=_EVERY_COMMAND,
)


def command(*examples: str, name: str | None = None, of: typer.Typer = app) -> Callable[[_Command], _Command]:
    """Register a command with examples that can be pasted. Each option of a group is a parameter of its own there."""

    def register(function: _Command) -> _Command:
        lines = ["\b", "Examples:", *(f"  {line}" for line in examples), "", f"More options: {HELP_ALL}"]
        of.command(name, epilog="\n".join(lines))(_flatten_options(function))
        return function

    return register


def _flatten_options(function: Callable[..., Any]) -> Any:
    """Return a function of single options: a parameter that is a dataclass becomes its fields, or those it names."""
    single: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for one in inspect.signature(function, eval_str=True).parameters.values():
        kind, *names = get_args(one.annotation) or [one.annotation]
        if isinstance(kind, type) and is_dataclass(kind):
            own = inspect.signature(kind, eval_str=True).parameters
            groups[one.name] = kind, names or list(own)
            single += [own[name] for name in names or own]
        else:
            single.append(one)

    written = [one.name for one in single if any(getattr(info, "callback", None) for info in get_args(one.annotation))]

    @wraps(function)
    def called(**given: Any) -> Any:
        _keep_apart(given, written)
        made = {group: kind(**{name: given.pop(name) for name in names}) for group, (kind, names) in groups.items()}
        return function(**given, **made)

    whole: Any = called
    whole.__signature__ = inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in single])
    whole.__annotations__ = {}
    del whole.__wrapped__
    return whole


_written: ContextVar[Mapping[str, Path]] = ContextVar("written")  # option → file that the command is to write


def _keep_apart(given: Mapping[str, Any], written: Sequence[str]) -> None:
    """Refuse a file to write that any parameter reads, or another one writes."""
    from deniable.cli.run import files_of
    from deniable.report import hashed_file

    files: dict[str, Path] = {}
    for name in sorted(given, key=lambda name: name not in written):  # first what is written
        _written.set(dict(files))
        what = f"--{name.replace('_', '-')}" if name in written else name
        for word in given[name] if isinstance(given[name], list) else [given[name]]:
            if word and isinstance(word, str | Path):
                keep(what, word, whole=isinstance(word, Path) or name == "data")
                keep(what, *(hashed_file(word) if name == "meta" else files_of(str(word))))
        if name in written and given[name]:
            files[what] = given[name]


def keep(what: str, *paths: str | Path, whole: bool = False) -> None:
    """Refuse to replace one of ``paths``, or with ``whole`` any file in these folders, by a file that is written."""
    for option, target in _written.get().items():
        real, named = target.resolve(), [Path(path).resolve() for path in paths]
        if real in named or (whole and set(named) & set(real.parents)):
            kind = "file" if real in named else "folder"
            raise InputError(f"{option} and {what} name the same {kind}, {str(target)!r}, which would be replaced")


def _show_version(asked: bool) -> None:
    if asked:
        import deniable

        typer.echo(f"deniable {deniable.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Could an attacker tell whether a person's record was in the training data?

    \b
      You have                    You want                  Command
      a table                     to see how it is read     check
                                  a private model           train, predict
                                  statistics, made-up rows  publish, synthesize
                                  to know who is exposed    profile
      a run (dpsgd,1,0.01,5000,   what attackers can reach  bound, compare
      epsilon,2,1e-5, or a file)  noise that keeps a limit  calibrate, plan
                                  a report by your policy   assess, annex
      a model, scores, a release  an attack, a verdict      attack, audit
      several releases, a report  their sum, a second look  ledger, verify

    Each has examples: deniable train --help.
    """


_words: ContextVar[tuple[str, ...]] = ContextVar("words", default=())


def command_line() -> str:
    """Return the command line being run, as it can be pasted into a shell."""
    return shlex.join(["deniable", *_words.get()])


def suggest(*words: str) -> None:
    """Say on stderr which command usually comes next, as it can be pasted into a shell; nothing without words."""
    if words:
        print(f"next: deniable {shlex.join(words)}", file=sys.stderr)


def write(files: Mapping[Path, str | bytes]) -> None:
    """Write files in their order, each complete or not at all, and say so on stderr."""
    for path, content in files.items():
        write_atomically(path, content)
        wrote(path)


def wrote(path: Path) -> None:
    """Say on stderr which file was written."""
    print(f"written: {path}", file=sys.stderr)


def again(*more: str) -> tuple[str, ...]:
    """Return the words of the command being run and more of them, to suggest it once more."""
    return (*_words.get(), *more)


def of_table(
    data: str, target: str | None = None, drop: Sequence[str] | None = None, **reading: str | Path | None
) -> tuple[str, ...]:
    """Return the words that say which table is read and how, to suggest another command for it."""
    read = ((f"--{name}", value) for name, value in reading.items())
    named = [("--target", target), *(("--drop", name) for name in drop or ()), *read]
    return (data, *(str(word) for pair in named if pair[1] is not None for word in pair))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; an error is one line on stderr unless --debug is given."""
    _words.set(tuple(arguments))
    arguments = arguments or ["--help"]
    if HELP_ALL in arguments:
        return _help_all(["--help" if word == HELP_ALL else word for word in arguments])
    debug = "--debug" in arguments
    arguments = [word for word in arguments if word != "--debug"]
    try:
        code: Any = _call(arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except ModuleNotFoundError as error:
        command = next(iter(arguments), "")
        extra = None if command in ON_RUNS else "tables"  # all that such a command may need next
        return _print_error(str(missing(error, f"deniable {command}", extra)), debug)
    except (InputError, ImportError) as error:
        return _print_error(str(error), debug)
    except OSError as error:
        return _print_error(f"{error.filename!r}: {error.strerror}" if error.filename else str(error), debug)
    except Exception as error:
        if hasattr(error, "format_message"):  # usage errors of the option parser
            return _print_error(_way_out(error.format_message(), getattr(error, "ctx", None)), debug)
        return _print_error(_DEFECT.format(type(error).__name__), debug, DEFECT)  # its own words may quote a cell
    if code == INTERRUPTED:  # Typer may also turn Ctrl-C into this code by itself
        print("interrupted; no file was left half written", file=sys.stderr)
    return code if isinstance(code, int) else FINE


def _way_out(said: str, context: Any) -> str:
    """Return ``said`` with how what was typed may have been meant, and where the command says what it takes."""
    said = said.rstrip(".")
    if context is None:
        return said
    from deniable.cli.run import is_run, meant

    examples, path = re.findall("deniable .*", context.command.epilog or ""), context.command_path.split()
    unknown, *near = re.findall("--[a-z-]+", said) or [""]
    said += "; write 0.1 for 10 %" * ("valid number" in said)
    loose = list(takewhile(lambda word: not word.startswith("-"), _words.get()[len(path) - 1 :]))
    kinds = {one.name: getattr(one, "help", "") for one in context.command.params}
    first = [*kinds].index("run") if "run" in kinds else len(loose)
    parts = loose[first:] if all(map(is_run, loose[first:])) else map(meant, " ".join(loose[first:]).split("+"))
    if "unexpected" in said and (run := meant(" + ".join(parts))):
        said += f"; a run is one argument: {shlex.join([*path, *loose[:first], run])}"
    elif unknown and (form := re.search(rf"\S*\b{unknown[2:]}=[^;\s]*", kinds.get("limit", ""))):
        said += f"; write --limit {form[0]}"
    elif examples and said.startswith(("Missing", "No such option")):
        said += f"; for example: {next((line for line in examples if {*near[:1]} <= {*line.split()}), examples[0])}"
    return f"{said} (see {context.command_path} --help)"


@cache
def _parser() -> Any:
    """Return the parser of all commands. Typer builds it anew on each call of ``app``, which takes most of a short run.

    Every command is registered when ``deniable.cli`` is imported, so that none can come later.
    """
    return typer.main.get_command(app)


def _help_all(arguments: list[str]) -> int:
    """Print the help with the options that --help leaves out and, where a run is taken, how each kind is written."""
    for command in _parser().commands.values():
        for option in command.params:
            option.hidden = False
    code = run(arguments)
    taken = getattr(_parser().commands.get(arguments[0]), "params", ())
    _parser.cache_clear()
    if {one.name for one in taken} & _OF_RUNS:
        from deniable.cli.run import forms

        print("\nRuns ([…] may be left out; numbers may be named, as steps=10):", *forms(), sep="\n  ")
    return code


def _call(arguments: list[str]) -> Any:
    """Run the command; warnings that are meant for people are lines on stderr, each once, and Ctrl-C is never lost."""
    before, logged = sys.unraisablehook, logging.root.manager.disable
    logging.disable(sys.maxsize)  # what others log may quote a cell
    with warnings.catch_warnings():
        warnings.filterwarnings("default", category=UserWarning)
        warnings.showwarning = _say
        sys.unraisablehook = lambda found: _again() if found.exc_type is KeyboardInterrupt else before(found)
        try:
            return _parser()(args=arguments, prog_name="deniable", standalone_mode=False)
        finally:
            sys.unraisablehook = before
            logging.disable(logged)


def _again() -> None:
    """Press Ctrl-C once more: it fell into a destructor or a callback from C, whose exceptions Python drops."""
    main = threading.main_thread().ident
    if sys.platform == "win32" or main is None:
        timer = threading.Timer(_SOON, _thread.interrupt_main)
    else:
        timer = threading.Timer(_SOON, signal.pthread_kill, (main, signal.SIGINT))
    timer.daemon = True
    timer.start()


def _say(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show a warning of ours as one line for a person, without the place in the code: others' may quote a cell."""
    if category.__module__.startswith("deniable."):
        print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)


def _print_error(message: str, debug: bool, code: int = BAD_INPUT) -> int:
    """Print an error as one line, with --debug also where it came from, and return the exit code."""
    if debug:
        import traceback

        error = sys.exception()
        while error is not None:  # with the errors behind it, whose texts may quote cells
            error.__suppress_context__ = False
            error = error.__context__
        traceback.print_exc()
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code
