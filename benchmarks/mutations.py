"""The mutants of a source file: mutmut's operators, one change each, written into the whole file.

mutmut itself would put all mutants of a function side by side behind a switch. Numba cannot compile the switch,
doctests would be collected once for each mutant, and worker processes would not see it. A mutant here is an ordinary
file.

What is not mutated, by rule:

- text for people: string literals in a `raise` statement, and any with a space between two words;
- what serves types and names alone: annotations, a module's type aliases, the type in `typing.cast`, `__all__`;
- decorators, and calls of `len` and `isinstance`, as in mutmut; `strict` of `zip`, `stacklevel` of a warning;
- the case of a string: one mutant of a string is enough;
- an argument in two ways: one by keyword is left out, another becomes None.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

__all__ = ["Mutant", "mutants_of"]

PROSE = re.compile(r"[A-Za-z}][,.:;]? [A-Za-z{]")


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    `lines` are those of the changed expression and of the statement it is in; `within` is the text of the function, or
    of the statement of the module, that is changed.
    """

    path: str
    function: str
    within: str
    lines: tuple[int, ...]
    before: str
    after: str
    repeat: int
    start: int
    stop: int
    text: str

    @property
    def name(self) -> str:
        """What stays the same when lines move: the file, the function and the change."""
        again = f" (number {self.repeat})" if self.repeat > 1 else ""
        return f"{self.path} {self.function or 'module'}{again}: {self.before} -> {self.after}"

    def source(self, original: bytes) -> bytes:
        """The whole file with the change in it."""
        return original[: self.start] + self.text.encode() + original[self.stop :]


def mutants_of(path: str, original: bytes) -> list[Mutant]:
    """All mutants of a file, from top to bottom."""
    finder = _Finder(original)
    MetadataWrapper(cst.parse_module(original)).visit(finder)
    seen: Counter[tuple[str, str, str]] = Counter()
    done, mutants = {original}, []
    for function, within, lines, (start, stop), text in finder.found:
        source = original[:start] + text.encode() + original[stop:]
        if source in done:
            continue
        done.add(source)
        before, after = _changed_lines(original, source)
        seen[function, before, after] += 1
        mutants.append(
            Mutant(path, function, within, lines, before, after, seen[function, before, after], start, stop, text)
        )
    return mutants


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider, ByteSpanPositionProvider)

    def __init__(self, original: bytes) -> None:
        self.original = original
        self.module = cst.parse_module(original)
        self.found: list[tuple[str, str, tuple[int, ...], tuple[int, int], str]] = []
        self.above: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.above.append(node)
        if _is_left_out(node) or self._is_for_types(node):
            return False
        if isinstance(node, cst.Call) and _called(node) == "cast":
            node.args[1].visit(self)
            return False
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                changed = list(operator(node))
                if isinstance(node, cst.SimpleString):
                    changed = [] if self._is_text(node) else changed[:1]
                for other in changed:
                    if not isinstance(node, cst.Call) or _counts(node, other):
                        self._add(node, other)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self.above.pop()

    def _is_for_types(self, node: cst.CSTNode) -> bool:
        if len(self.above) > 3 or not isinstance(node, cst.Assign):  # a module's own statements
            return False
        target = node.targets[0].target
        return isinstance(target, cst.Name) and (target.value == "__all__" or not target.value.isupper())

    def _is_text(self, node: cst.SimpleString) -> bool:
        return any(isinstance(one, cst.Raise) for one in self.above) or bool(PROSE.search(node.value))

    def _add(self, node: cst.CSTNode, changed: cst.CSTNode) -> None:
        span, lines = self.get_metadata(ByteSpanPositionProvider, node), self._lines(node)
        if getattr(node, "lpar", ()):  # the span of an expression is what stands inside of its parentheses
            changed = changed.with_changes(lpar=(), rpar=()) if changed.lpar is node.lpar else changed
            node = node.with_changes(lpar=(), rpar=())
        indent = "\n" + "    " * sum(isinstance(one, cst.IndentedBlock) for one in self.above)
        before, after = (self.module.code_for_node(one).replace("\n", indent) for one in (node, changed))
        start, stop = span.start, span.start + span.length
        text = self.original[start:stop].decode()
        if text.strip() != before.strip():
            raise RuntimeError(f"{text!r} stands where {before!r} was expected.")
        lead = text[: len(text) - len(text.lstrip())]
        names = [one.name.value for one in self.above if isinstance(one, cst.FunctionDef | cst.ClassDef)]
        self.found.append((".".join(names), self._within(), lines, (start, stop), lead + after.strip()))

    def _within(self) -> str:
        functions = [one for one in self.above if isinstance(one, cst.FunctionDef)]
        whole = self.get_metadata(ByteSpanPositionProvider, functions[0] if functions else self.above[1])
        return self.original[whole.start : whole.start + whole.length].decode()

    def _lines(self, node: cst.CSTNode) -> tuple[int, ...]:
        """Lines that run if the change runs; none at the level of a module or of a signature."""
        statements = [one for one in self.above if isinstance(one, cst.BaseSmallStatement | cst.BaseCompoundStatement)]
        functions = [one for one in statements if isinstance(one, cst.FunctionDef)]
        if not functions or statements[-1] is functions[-1]:
            return ()
        where = self.get_metadata(PositionProvider, node)
        return (
            self.get_metadata(PositionProvider, statements[-1]).start.line,
            *range(where.start.line, where.end.line + 1),
        )


def _is_left_out(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Arg):
        return _is_a_guard(node)
    return isinstance(node, cst.Annotation | cst.Decorator) or (
        isinstance(node, cst.Call) and _called(node) in ("len", "isinstance")
    )


def _counts(call: cst.Call, changed: cst.CSTNode) -> bool:
    """Whether a changed call is one of the mutants: of an argument, one that guards nothing, and one way of two."""
    if not isinstance(changed, cst.Call):
        return True
    differing = [i for i, (one, other) in enumerate(zip(call.args, changed.args, strict=False)) if one is not other]
    at = differing[0] if differing else len(changed.args)
    if at == len(call.args):
        return True
    dropped = len(changed.args) < len(call.args)
    by_keyword = call.args[at].keyword is not None and len(call.args) > 1
    return dropped == by_keyword and not _is_a_guard(call.args[at])


def _is_a_guard(argument: cst.Arg) -> bool:
    return argument.keyword is not None and argument.keyword.value in ("strict", "stacklevel")


def _called(node: cst.Call) -> str:
    return node.func.value if isinstance(node.func, cst.Name) else ""


def _changed_lines(original: bytes, source: bytes) -> tuple[str, str]:
    old, new = original.decode().split("\n"), source.decode().split("\n")
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return " ".join(" ".join(old).split()), " ".join(" ".join(new).split())
