"""Small changes of a right solution: mutmut's operators, and four that it lacks."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst
import libcst.matchers as m
from mutmut.mutation.mutators import mutation_operators, operator_string


@dataclass(frozen=True)
class Mutation:
    """A right solution with one small change in it."""

    operator: str
    before: str
    """The lines that the change took away, without what they are indented by; so `after`, what it put there."""
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same mutation in another version of the solution."""
        return self.before, self.after


def _negated(node: cst.If | cst.While) -> Iterator[cst.CSTNode]:
    inner = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), inner))


def _dropped(node: cst.SimpleStatementLine) -> Iterator[cst.CSTNode]:
    """A statement left out; a docstring, an import or a `pass` changes nothing."""
    if not m.matches(node.body[0], m.Expr(m.SimpleString()) | m.Import() | m.ImportFrom() | m.Pass()):
        yield node.with_changes(body=[cst.Pass()])


def _swapped(node: cst.Call) -> Iterator[cst.CSTNode]:
    """Neighbouring arguments, both without a name, in the other order."""
    for place in range(len(node.args) - 1):
        first, second = node.args[place], node.args[place + 1]
        if not (first.keyword or second.keyword or first.star or second.star):
            swapped = [first.with_changes(value=second.value), second.with_changes(value=first.value)]
            yield node.with_changes(args=[*node.args[:place], *swapped, *node.args[place + 2 :]])


def _smaller(node: cst.Integer) -> Iterator[cst.CSTNode]:
    """One less, where the library says one more."""
    yield (
        node.with_changes(value=str(node.evaluated_value - 1))
        if node.evaluated_value
        else cst.UnaryOperation(
            cst.Minus(), cst.Integer("1"), lpar=[cst.LeftParen()], rpar=[cst.RightParen()]
        )
    )


#: Arguments that change how fast something is done, or whether what never happens here would be an error.
ARID = (
    "strict",
    "foreach",
    "fused",
    "non_blocking",
    "daemon",
    "pin_memory",
    "persistent_workers",
    "prefetch_factor",
)


class _Bare(ast.NodeTransformer):
    """A tree without what no check can see, so that two of them are equal where no check can tell two solutions apart.

    Changes of such "arid" nodes are not made at all (Petrović and Ivanković, "State of Mutation Testing at Google",
    2018): the arguments above, a type without a value, and the order of the arguments of `min` and `max`.
    """

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ARID]
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max") and not node.keywords:
            node.args.sort(key=ast.dump)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        return node if node.value else ast.Pass()


def _bare(source: str) -> str:
    return ast.dump(_Bare().visit(ast.parse(source)))


Operator = Callable[[Any], Iterable[cst.CSTNode]]
OPERATORS: tuple[tuple[type, Operator], ...] = (
    *mutation_operators,
    (cst.If, _negated),
    (cst.While, _negated),
    (cst.SimpleStatementLine, _dropped),
    (cst.Call, _swapped),
    (cst.Integer, _smaller),
)


class _Finder(cst.CSTVisitor):
    """Every change of every node that decides what a solution does."""

    def __init__(self) -> None:
        self.found: list[tuple[str, cst.CSTNode, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        # Types, decorators and imports decide nothing; the words of an error are its author's.
        if isinstance(node, cst.Annotation | cst.Decorator | cst.Import | cst.ImportFrom | cst.Raise):
            return False
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                changed = list(operator(node))
                # Of a text one other text is enough: in capitals it would be wrong in the same way.
                self.found += [
                    (operator.__name__.removeprefix("operator_").strip("_"), node, new)
                    for new in (changed[:1] if operator is operator_string else changed)
                ]
        return True


def mutations(source: str) -> list[Mutation]:
    """Every small change of a solution, each once, in the order of its lines.

    Raises `libcst.ParserSyntaxError` for what is no Python.
    """
    module = cst.MetadataWrapper(cst.parse_module(source)).module  # in which no node stands twice
    finder = _Finder()
    module.visit(finder)
    seen = {_bare(source)}
    made = []
    for operator, node, new in finder.found:
        changed = module.deep_replace(node, new).code
        try:
            tree = _bare(changed)
        except SyntaxError:
            continue
        if tree not in seen:
            seen.add(tree)
            made.append(Mutation(operator, *_lines(source, changed), changed))
    return made


def _lines(before: str, after: str) -> tuple[str, str]:
    """The lines that only one of the two has, joined."""
    changed = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    return (
        " ".join(line[1:].strip() for line in changed if line.startswith("-")),
        " ".join(line[1:].strip() for line in changed if line.startswith("+")),
    )
