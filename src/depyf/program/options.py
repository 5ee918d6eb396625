"""Options for watching a program: those of ``depyf run``, and of ``DEPYF_DUMP_OPTIONS``, which holds the same words."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..capture import CACHES
from ..values import frozen

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

#: Stages by the words of the command line, and what records call them.
STAGES = {
    "captured": "Captured_Graph", "joint": "Joint_graph", "forward": "Forward_graph", "backward": "Backward_graph",
    "post-grad": "AFTER_POST_GRAD", "kernels": "kernels"}

#: Options that are arguments of :class:`depyf.prepare_debug`, too.
AS_GIVEN = ("link", "internal_stages", "unsimplified", "log_bytecode", "caches", "page", "files", "check")
#: Options whose value is a word of its own.
_TAKE_A_VALUE = ("-o", "--output", "--include", "--exclude", "--backend", "--stage", "--caches", "--files")


@frozen
class Options:
    """The options of a watched program."""

    # include, exclude, backend, stage: what is written (`views.choice.Choice`); empty: all
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    backend: tuple[str, ...] = ()
    stage: tuple[str, ...] = ()
    # link, internal_stages, unsimplified, log_bytecode, caches, page, files: as of `prepare_debug`
    link: bool | None = None
    internal_stages: bool = False
    unsimplified: bool = False
    log_bytecode: bool = False
    caches: str = "separate"
    page: bool | None = None
    files: str | None = None
    check: int = 0  # one in so many compiled calls is judged; 0: none
    quiet: bool = False  # no summary and no progress

    @classmethod
    def of(cls, given: argparse.Namespace) -> Options:
        """Return the options that a parser read (:func:`add_to`)."""
        values: dict[str, Any] = {field.name: getattr(given, field.name) for field in fields(cls)}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**(values | lists))

    @classmethod
    def read(cls, text: str) -> Options:
        """Return the options of :attr:`text`.

        Raises:
            ValueError: one is not known; the message names it.
        """
        if not text.strip():
            return cls()
        import argparse
        import shlex

        class Parser(argparse.ArgumentParser):
            def error(self, message: str) -> Any:
                raise ValueError(message)

        parser = Parser(prog="depyf", add_help=False, allow_abbrev=False)
        add_to(parser)
        return cls.of(parser.parse_args(spelled_out(shlex.split(text))))

    @property
    def text(self) -> str:
        """As :meth:`read` takes them; empty if all are defaults."""
        import shlex

        words: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            option = field.name.replace("_", "-")
            if value == field.default:
                continue
            if isinstance(value, tuple):
                words += [f"--{option}={each}" for each in value]
            elif isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
            else:
                words.append(f"--{option}={value}")
        return shlex.join(words)


def spelled_out(words: Sequence[str]) -> list[str]:
    """Return the words of ``depyf run``, with ``--check=1`` for a plain ``--check``, which takes no next word."""
    result = list(words)
    for at, word in enumerate(result):
        if word == "--check":
            result[at] = "--check=1"
        elif not word.startswith("-") and (not at or result[at - 1] not in _TAKE_A_VALUE):
            break  # the program; what follows is its own
    return result


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        import argparse  # (start-up does without it)

        raise argparse.ArgumentTypeError(f"{text!r} is no number of calls")
    return int(text)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser."""
    import argparse

    shown = parser.add_argument_group(
        "what is written", "These choose what is written, never what is compiled. Patterns are those of the shell; "
        "one with a / or with .py at its end is compared with the file of a function, any other with its qualified "
        "name and its last part. Each can be given several times.")
    shown.add_argument("--include", action="append", default=[], metavar="PATTERN",
                       help="only functions that match, with what continues after their graph breaks")
    shown.add_argument("--exclude", action="append", default=[], metavar="PATTERN", help="no functions that match")
    shown.add_argument("--backend", action="append", default=[], metavar="NAME",
                       help="only graphs of this backend (eager, aot_eager, inductor, ...)")
    shown.add_argument("--stage", action="append", default=[], choices=STAGES, metavar="STAGE",
                       help=f"only these stages of graphs: {', '.join(STAGES)}")
    shown.add_argument("--internal-stages", action="store_true", help="torch's internal graphs too")
    shown.add_argument("--unsimplified", action="store_true",
                       help="each transformed function once more with nothing simplified")
    shown.add_argument("--log-bytecode", action="store_true", help="code objects too (marshal)")
    shown.add_argument("--page", action=argparse.BooleanOptionalAction, default=None,
                       help="write the page index.html (default: unless that takes over two seconds)")
    shown.add_argument("--files", choices=("now", "later"), default=None,
                       help="when the files to read are made of what was recorded: at the end of the program (now, the "
                            "default), or by whoever reads them (later: `depyf report DIR` and the other commands)")
    watched = parser.add_argument_group("how it is watched")
    watched.add_argument("--link", action=argparse.BooleanOptionalAction, default=None,
                         help="tie running code to the files at once, for tracebacks (default: when depyf.debug() is "
                              "entered, and under a debugger)")
    watched.add_argument("--caches", choices=CACHES, default="separate",
                         help="torch's compile caches: separate entries for watched runs (default), do not use them, "
                              "or use them as they are and lose what an entry lacks")
    watched.add_argument("--check", type=_count, default=0, metavar="N",
                         help="judge each compiled call, or one in N, against eager Python while the program runs "
                              "on, in processes forked for it: a call takes a tenth of a second more, and what torch "
                              "compiles is compiled twice (not with a space: --check=4)")
    watched.add_argument("-q", "--quiet", action="store_true", help="no summary and no progress")
