"""Sets of squares: one value of 128 bits in kernels, an integer in plain Python. Bit s is square s.

Kernels combine sets by `&`, `|`, `^` and `~`, and test them by `if`. `~` also sets the bits beyond the board, so it is
used beside `&` only. In arrays a set is two uint64 words, low and high, at 2 * row and 2 * row + 1.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from yomi.native.bits import U
from yomi.native.jit import inlined, machine_code

SQUARES = 81
NO_SQUARE = 81  # Square of a missing king. Tables by square have an empty row for it.
_WORD, _PAIR = ir.IntType(64), ir.IntType(128)


class SquareSet(types.Type):
    """numba's type of a set of squares."""


SET: Any = SquareSet("SquareSet")


@register_model(SquareSet)
class _SetModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _PAIR)  # type: ignore[no-untyped-call]


def _define(operation: Any, arguments: int, result: Any, write: Any) -> None:
    """Define an operation on sets; `write` emits its instructions from an LLVM builder and the operands."""
    template: Any = type("_Operation", (ConcreteTemplate,), {"cases": [signature(result, *[SET] * arguments)]})
    infer_global(operation)(template)
    lower_builtin(operation, *[SET] * arguments)(lambda context, builder, _, args: write(builder, *args))


for _operation, _in_place, _name in (
    (operator.and_, operator.iand, "and_"),
    (operator.or_, operator.ior, "or_"),
    (operator.xor, operator.ixor, "xor"),
):
    for _form in (_operation, _in_place):
        _define(_form, 2, SET, lambda builder, a, b, name=_name: getattr(builder, name)(a, b))
_define(operator.invert, 1, SET, lambda builder, a: builder.not_(a))
_define(operator.not_, 1, types.boolean, lambda builder, a: builder.icmp_unsigned("==", a, a.type(0)))
_define(bool, 1, types.boolean, lambda builder, a: builder.icmp_unsigned("!=", a, a.type(0)))


def _intrinsic(result: Any, arguments: tuple[Any, ...], write: Any) -> Any:
    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return write(builder, *args)

    return result(*arguments), codegen


@machine_code(lambda low, high: int(low) | int(high) << 64)
def joined(typing_context: Any, low: Any, high: Any) -> Any:
    """Combine the low and the high word (uint64) of a set of squares."""

    def write(builder: Any, low: Any, high: Any) -> Any:
        return builder.or_(builder.zext(low, _PAIR), builder.shl(builder.zext(high, _PAIR), _PAIR(64)))

    return _intrinsic(SET, (types.uint64, types.uint64), write)


@machine_code(lambda squares: (U(squares & (1 << 64) - 1), U(squares >> 64)))
def words_of(typing_context: Any, squares: Any) -> Any:
    """Return the low and the high word of a set."""

    def codegen(context: Any, builder: Any, types_: Any, args: Any) -> Any:
        high = builder.trunc(builder.lshr(args[0], _PAIR(64)), _WORD)
        return context.make_tuple(builder, types_.return_type, [builder.trunc(args[0], _WORD), high])

    return types.UniTuple(types.uint64, 2)(SET), codegen


@machine_code(lambda: 0)
def no_squares(typing_context: Any) -> Any:
    return _intrinsic(SET, (), lambda builder: _PAIR(0))


@machine_code(lambda: (1 << SQUARES) - 1)
def all_squares(typing_context: Any) -> Any:
    return _intrinsic(SET, (), lambda builder: _PAIR((1 << SQUARES) - 1))


@machine_code(lambda square: 1 << int(square))
def only(typing_context: Any, square: Any) -> Any:
    """Return the set of one square; for NO_SQUARE a bit beyond the board."""
    return _intrinsic(SET, (types.uint64,), lambda builder, a: builder.shl(_PAIR(1), builder.zext(a, _PAIR)))


@machine_code(lambda squares: U((squares & -squares).bit_length() - 1))
def first_square(typing_context: Any, squares: Any) -> Any:
    """Return the lowest square of a nonempty set."""
    return _intrinsic(types.uint64, (SET,), lambda builder, a: builder.trunc(builder.cttz(a, ir.IntType(1)(1)), _WORD))


@machine_code(lambda squares: U(squares.bit_length() - 1))
def last_square(typing_context: Any, squares: Any) -> Any:
    """Return the highest square of a nonempty set."""
    return _intrinsic(
        types.uint64,
        (SET,),
        lambda builder, a: builder.trunc(builder.xor(builder.ctlz(a, ir.IntType(1)(1)), _PAIR(127)), _WORD),
    )


@machine_code(lambda squares: squares & (squares - 1))
def without_first(typing_context: Any, squares: Any) -> Any:
    """Return a nonempty set without its lowest square."""
    return _intrinsic(SET, (SET,), lambda builder, a: builder.and_(a, builder.sub(a, _PAIR(1))))


@machine_code(lambda squares: U(squares.bit_count()))
def number_of(typing_context: Any, squares: Any) -> Any:
    return _intrinsic(types.uint64, (SET,), lambda builder, a: builder.trunc(builder.ctpop(a), _WORD))


@machine_code(lambda squares: squares << 1)
def one_rank_down(typing_context: Any, squares: Any) -> Any:
    """Move a set of squares one rank back for Black. No square of the set may be on the last rank."""
    return _intrinsic(SET, (SET,), lambda builder, a: builder.shl(a, _PAIR(1)))


@machine_code(lambda squares: squares >> 1)
def one_rank_up(typing_context: Any, squares: Any) -> Any:
    """Move a set of squares one rank forward for Black. No square of the set may be on the first rank."""
    return _intrinsic(SET, (SET,), lambda builder, a: builder.lshr(a, _PAIR(1)))


@inlined
def squares_at(words, row):  # type: ignore[no-untyped-def]
    """Return the set in a row of an array."""
    return joined(words[row * U(2)], words[row * U(2) + U(1)])


@inlined
def has(words, row, square):  # type: ignore[no-untyped-def]
    """Return 1 if a square is in the set in a row of an array, otherwise 0. Reads only one of its words."""
    return (words[row * U(2) + (square >> U(6))] >> (square & U(63))) & U(1)


@inlined
def put(words, row, squares):  # type: ignore[no-untyped-def]
    """Write a set into a row of an array."""
    words[row * U(2)], words[row * U(2) + U(1)] = words_of(squares)
