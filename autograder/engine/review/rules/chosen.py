"""What a library has under a name that is made as the cell runs, where an exercise lets a cell ask for it.

`getattr(torch, name)` is how a dtype is found by its name, and how any module is that torch has imported. So it may be
used in no other way than a dtype is: whatever else is done with it is a reason to look.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.engine.review.cell import Cell, text_of
from autograder.engine.review.kinds import CHOSEN
from autograder.engine.review.words import listed

SAYS = "does more than name a dtype"
_MAKERS = listed("""
    torch.tensor torch.as_tensor torch.asarray torch.frombuffer torch.empty torch.zeros torch.ones torch.full
    torch.arange torch.eye torch.linspace torch.scalar_tensor torch.rand torch.randn torch.randint
""")
"""Which take a dtype, and call nobody with it. Those that take a tensor could be answered by its class."""
_CONVERT = ("to", "view", "type")
_ASKED = ("builtins.isinstance", "builtins.str", "builtins.repr")
_PASSING = (
    ast.Expr,
    ast.FormattedValue,
    ast.If,
    ast.While,
    ast.IfExp,
    ast.BoolOp,
)  # a side is the whole's business


def about_chosen(cell: Cell, node: ast.expr) -> Iterator[str]:
    """Of a name or a call that can be such a thing, by where it stands."""
    if cell.may_choose and CHOSEN in cell.values.of(node) and not _is_for_a_dtype(cell, node):
        yield f"{SAYS} by `{text_of(cell.parents.get(id(node), node))}`"


def _is_for_a_dtype(cell: Cell, node: ast.expr) -> bool:
    parent = cell.parents.get(id(node))
    if isinstance(parent, _PASSING):
        return True
    match parent:
        case ast.Assert(test=test):
            return test is node
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Assign(targets=targets):  # a variable, and the variable is followed
            return all(isinstance(one, ast.Name) for one in targets) and not _is_in_class(cell, parent)
        case ast.AnnAssign(target=ast.Name()) | ast.NamedExpr():
            return not _is_in_class(cell, parent)
        case ast.Compare(ops=operators):  # an `==` asks the other side
            return all(isinstance(one, ast.Is | ast.IsNot) for one in operators)
        case ast.keyword(arg="dtype"):
            call = cell.parents.get(id(parent))
            return isinstance(call, ast.Call) and (_makes(cell, call) or _converts(cell, call))
        case ast.Call(func=function, args=[first, *_]) if first is node and function is not node:
            return cell.values.is_call_of(parent, *_ASKED) or _converts(cell, parent)
    return False


def _is_in_class(cell: Cell, node: ast.AST) -> bool:
    """Whether what is bound here is an attribute, which any object may hand on."""
    return cell.scopes.of[id(node)].kind == "class"


def _makes(cell: Cell, call: ast.Call) -> bool:
    known = [one.path for one in cell.values.known(call.func)]
    return len(known) == len(cell.values.of(call.func)) and set(known) <= _MAKERS


def _converts(cell: Cell, call: ast.Call) -> bool:
    """Whether it is `torch.tensor(…).to(x)`: of what torch has just made, for others may have a method of their own."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _CONVERT:
        return False
    made: ast.expr = call.func.value
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and not _makes(cell, made):
        made = made.func.value
    return isinstance(made, ast.Call) and _makes(cell, made)
