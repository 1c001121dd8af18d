"""LLVM code for float vectors, which numba cannot express.

A routine becomes one function in each module that calls it. Addresses are int64: kernels pass `array.ctypes.data` plus
an offset in bytes.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic

# Multiplications and additions are marked `contract`: LLVM fuses them if the processor can. llvm.fma would call a
# library function otherwise.
I8, I16, I32, I64, F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()


class _Bfloat(ir.Type):  # type: ignore[misc]  # llvmlite has no types
    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bfloat)

    def __hash__(self) -> int:
        return hash(_Bfloat)


def _target_has(feature: str, level: str | None = None) -> bool:
    """Return whether the processor that numba compiles for has a feature.

    Args:
        feature: LLVM's name.
        level: the x86-64 level that includes it, in case numba compiles for a level.
    """
    if features := getattr(config, "CPU_FEATURES", None):
        return f"+{feature}" in features.split(",")
    if name := getattr(config, "CPU_NAME", None):
        return bool(name == level)
    return bool(llvm.get_host_cpu_features().get(feature))


# Floats of a vector.
WIDTH = 16 if _target_has("avx512f", "x86-64-v4") else 8 if _target_has("avx2", "x86-64-v3") else 4
# Whether one instruction adds products of pairs of 16-bit integers (Intel servers since Cascade Lake, desktops since
# Alder Lake; AMD since Zen 4).
HAS_DOT_PRODUCTS = (WIDTH == 16 and _target_has("avx512vnni")) or (WIDTH == 8 and _target_has("avxvnni"))
# Whether the processor adds products of pairs of 16-bit integers at all, possibly by two instructions.
HAS_PAIRS = HAS_DOT_PRODUCTS or WIDTH == 8 or (WIDTH == 16 and _target_has("avx512bw", "x86-64-v4"))
# Kinds of numbers to multiply: floats; pairs of 16-bit integers; pairs of bfloats, in tiles (Intel's AMX) or vectors
# (HAS_HALF_PRODUCTS); four 8-bit integers, which needs HAS_DOT_PRODUCTS.
FLOATS, INTEGERS, TILES, BYTES = range(4)
IN_WORD = (1, 2, 2, 4)  # numbers in a word of four bytes, by kind
# Whether the processor multiplies tiles. The system must allow it, too (`has_tiles`).
KNOWS_TILES = WIDTH == 16 and _target_has("amx-bf16")
# Whether one instruction adds products of pairs of bfloats, without tiles (AMD since Zen 4).
HAS_HALF_PRODUCTS = WIDTH == 16 and not KNOWS_TILES and _target_has("avx512bf16")
PRODUCT_KINDS = (FLOATS, *((INTEGERS,) if HAS_PAIRS else ()), *((TILES,) if KNOWS_TILES else ()))
# Kinds that inputs of products may have. Sums of BYTES and INTEGERS are 32-bit integers.
INPUT_KINDS = (*PRODUCT_KINDS, *((BYTES,) if HAS_DOT_PRODUCTS else ()))
# Kinds of matrix products.
MATRIX_KINDS = (*INPUT_KINDS, *((TILES,) if HAS_HALF_PRODUCTS else ()))
# Kinds of attention's products of two inputs.
SCORE_KINDS = tuple(kind for kind in MATRIX_KINDS if kind != BYTES)
VECTOR = ir.VectorType(F32, WIDTH)
INT_VECTOR = ir.VectorType(I32, WIDTH)
SHORT_VECTOR = ir.VectorType(I16, WIDTH)
HALF_VECTOR = ir.VectorType(_Bfloat(), 2 * WIDTH)
BYTE_VECTOR = ir.VectorType(I8, WIDTH)
PAIR_VECTOR = ir.VectorType(I16, 2 * WIDTH)
REGISTERS = 32 if WIDTH == 16 else 16  # Vector registers. NEON has 32; half stay unused.
FLOAT_BYTES = 4
# Indices of the arguments of tile instructions that are addresses.
_ADDRESSES = {"ldtilecfg": (0,), "tileloadd64": (1,), "tilestored64": (1,)}
# Linux: the system call, ARCH_REQ_XCOMP_PERM, and the number of the tiles' state.
_ARCH_PRCTL, _REQUEST_REGISTERS, _TILE_REGISTERS = 158, 0x1023, 18


@functools.cache
def has_tiles() -> bool:
    """Ask Linux for the processor's tile registers (AMX). Return whether this process may use them."""
    # The system must permit it, since each thread then has 8 kB of registers more.
    if not (KNOWS_TILES and sys.platform == "linux" and platform.machine() == "x86_64"):
        return False
    return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_REGISTERS, _TILE_REGISTERS) == 0)


class Emitter:
    """Writes vector code at the end of a function."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.ir = builder

    def at(self, base: Any, *offsets: Any) -> Any:
        """Return base plus offsets, each an int or an int64 value."""
        fixed = sum(offset for offset in offsets if isinstance(offset, int))
        for offset in offsets:
            if not isinstance(offset, int):
                base = self.ir.add(base, offset)
        return self.ir.add(base, I64(fixed)) if fixed else base

    def times(self, value: Any, factor: int) -> Any:
        return self.ir.mul(value, I64(factor))

    def load(self, address: Any, kind: Any = VECTOR) -> Any:
        return self.ir.load(self.ir.inttoptr(address, kind.as_pointer()), align=FLOAT_BYTES)

    def store(self, value: Any, address: Any) -> None:
        self.ir.store(value, self.ir.inttoptr(address, value.type.as_pointer()), align=FLOAT_BYTES)

    def reserve(self, vectors: int) -> Any:
        """Reserve memory for some vectors until the routine returns. Return its address."""
        memory = self.ir.alloca(VECTOR, vectors)
        memory.align = FLOAT_BYTES * WIDTH
        return self.ir.ptrtoint(memory, I64)

    def store_rounded(self, value: Any, factor: Any, address: Any) -> None:
        """Store value * factor, rounded to 16-bit integers. The results must fit."""
        # Adding 1.5 * 2**23 rounds to an integer in the lowest bits.
        bits = self.ir.bitcast(self.fma(value, factor, self.splat(float(3 << 22))), INT_VECTOR)
        self.ir.store(self.ir.trunc(bits, SHORT_VECTOR), self.ir.inttoptr(address, SHORT_VECTOR.as_pointer()), align=2)

    def store_bytes(self, value: Any, factor: Any, address: Any) -> None:
        """Store value * factor, rounded, plus 128 as bytes. The results must fit."""
        bits = self.ir.bitcast(self.fma(value, factor, self.splat(float((3 << 22) + 128))), INT_VECTOR)
        self.ir.store(self.ir.trunc(bits, BYTE_VECTOR), self.ir.inttoptr(address, BYTE_VECTOR.as_pointer()), align=1)

    def store_halves(self, value: Any, address: Any) -> None:
        bits = self.ir.add(self.ir.bitcast(value, INT_VECTOR), ir.Constant(INT_VECTOR, [0x8000] * WIDTH))
        upper = self.ir.trunc(self.ir.lshr(bits, ir.Constant(INT_VECTOR, [16] * WIDTH)), SHORT_VECTOR)
        self.ir.store(upper, self.ir.inttoptr(address, SHORT_VECTOR.as_pointer()), align=2)

    def greatest_of(self, integers: Any) -> Any:
        return self._call(f"llvm.vector.reduce.smax.v{WIDTH}i32", I32, [integers])

    def sum_of(self, floats: Any) -> Any:
        """Return the sum of a vector of floats, added in any order."""
        return self._call(f"llvm.vector.reduce.fadd.v{WIDTH}f32", F32, [F32(0.0), floats], ("reassoc",))

    def greatest_float_of(self, floats: Any) -> Any:
        """Return the maximum of a vector of floats without NaN."""
        return self._call(f"llvm.vector.reduce.fmax.v{WIDTH}f32", F32, [floats], ("nnan",))

    def square_root(self, number: Any) -> Any:
        return self._call("llvm.sqrt.f32", F32, [number])

    def add_products_of_pairs(self, a: Any, b: Any, c: Any) -> Any:
        """Return int32 c[i] + a[2i] * b[2i] + a[2i+1] * b[2i+1], for 16-bit a and b."""
        bits = 32 * WIDTH
        if HAS_DOT_PRODUCTS:
            words = [self.ir.bitcast(value, INT_VECTOR) for value in (a, b)]
            return self._call(f"llvm.x86.avx512.vpdpwssd.{bits}", INT_VECTOR, [c, *words])
        name = "llvm.x86.avx512.pmaddw.d.512" if WIDTH == 16 else "llvm.x86.avx2.pmadd.wd"
        return self._fenced(self.ir.add(c, self._call(name, INT_VECTOR, [a, b])))

    def _fenced(self, integers: Any) -> Any:
        """Return integers unchanged. LLVM may not mix the sums before this point with the sums after it."""
        # Otherwise LLVM adds up the products of consecutive steps first, which takes more registers than there are.
        floats = self._call(f"llvm.arithmetic.fence.v{WIDTH}f32", VECTOR, [self.ir.bitcast(integers, VECTOR)])
        return self.ir.bitcast(floats, INT_VECTOR)

    def add_products_of_halves(self, a: Any, b: Any, c: Any) -> Any:
        """Return float c[i] + a[2i] * b[2i] + a[2i+1] * b[2i+1], for bfloats. Needs HAS_HALF_PRODUCTS."""
        return self._call("llvm.x86.avx512bf16.dpbf16ps.512", VECTOR, [c, a, b])

    def add_products_of_bytes(self, a: Any, b: Any, c: Any) -> Any:
        """Return int32 c[i] + the sum of a[4i+k] * b[4i+k], for unsigned bytes a and signed bytes b. Needs
        HAS_DOT_PRODUCTS.
        """
        return self._call(f"llvm.x86.avx512.vpdpbusd.{32 * WIDTH}", INT_VECTOR, [c, a, b])

    def to_floats(self, integers: Any) -> Any:
        return self.ir.sitofp(integers, VECTOR)

    def magnitude_bits(self, value: Any) -> Any:
        """Return the bits of the absolute values of floats. As integers they have the same order."""
        return self.ir.and_(self.ir.bitcast(value, INT_VECTOR), ir.Constant(INT_VECTOR, [0x7FFFFFFF] * WIDTH))

    def tiles(self, name: str, *values: Any) -> None:
        """Write a tile instruction. A tile's number is an int, an address an int64 value."""
        pointer = ir.IntType(8).as_pointer()
        numbers = [I8(v) if isinstance(v, int) else v for v in values]
        numbers = [self.ir.inttoptr(v, pointer) if k in _ADDRESSES.get(name, ()) else v for k, v in enumerate(numbers)]
        self._call(f"llvm.x86.{name}", ir.VoidType(), numbers)

    def _call(self, name: str, result: Any, values: list[Any], flags: tuple[str, ...] = ()) -> Any:
        module = self.ir.module
        kind = ir.FunctionType(result, [value.type for value in values])
        function = module.globals[name] if name in module.globals else ir.Function(module, kind, name)
        return self.ir.call(function, values, fastmath=flags)

    def prefetch(self, address: Any) -> None:
        pointer = self.ir.inttoptr(address, ir.IntType(8).as_pointer())
        self._call("llvm.prefetch.p0", ir.VoidType(), [pointer, I32(0), I32(3), I32(1)])

    def splat(self, number: Any) -> Any:
        if isinstance(number, int | float):
            return ir.Constant(VECTOR, [float(number)] * WIDTH)
        first = self.ir.insert_element(ir.Constant(VECTOR, ir.Undefined), number, I32(0))
        places = ir.Constant(INT_VECTOR, [0] * WIDTH)
        return self.ir.shuffle_vector(first, ir.Constant(VECTOR, ir.Undefined), places)

    def lanes_below(self, count: Any) -> Any:
        """Return a mask: lane number < `count`, an int64 value."""
        first = self.ir.insert_element(ir.Constant(INT_VECTOR, ir.Undefined), self.ir.trunc(count, I32), I32(0))
        places = ir.Constant(INT_VECTOR, [0] * WIDTH)
        bound = self.ir.shuffle_vector(first, ir.Constant(INT_VECTOR, ir.Undefined), places)
        return self.ir.icmp_signed("<", ir.Constant(INT_VECTOR, list(range(WIDTH))), bound)

    def broadcast(self, address: Any) -> Any:
        return self.splat(self.load(address, F32))

    def broadcast_pair(self, address: Any) -> Any:
        return self.ir.bitcast(self.broadcast(address), PAIR_VECTOR)

    def broadcast_halves(self, address: Any) -> Any:
        return self.ir.bitcast(self.broadcast(address), HALF_VECTOR)

    def broadcast_bytes(self, address: Any) -> Any:
        return self.ir.bitcast(self.broadcast(address), INT_VECTOR)

    def add(self, a: Any, b: Any) -> Any:
        return self.ir.fadd(a, b, flags=["contract"])

    def sub(self, a: Any, b: Any) -> Any:
        return self.ir.fsub(a, b, flags=["contract"])

    def mul(self, a: Any, b: Any) -> Any:
        return self.ir.fmul(a, b, flags=["contract"])

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.add(self.mul(a, b), c)

    def maximum(self, a: Any, b: Any) -> Any:
        """Return the greater of a and b; b if a is NaN."""
        return self.ir.select(self.ir.fcmp_ordered(">", a, b), a, b)

    def minimum(self, a: Any, b: Any) -> Any:
        """Return the smaller of a and b; b if a is NaN."""
        return self.ir.select(self.ir.fcmp_ordered("<", a, b), a, b)

    @contextmanager
    def loop(self, count: Any, step: int, carried: Sequence[Any] = (), may_be_empty: bool = False) -> Iterator[Loop]:
        """Loop over index = 0, step, ... below `count`.

        Args:
            count: an int64 value; positive unless `may_be_empty`.
            step: added to the index.
            carried: initial values of loop variables.
            may_be_empty: test before the first iteration, too.
        """
        builder = self.ir
        before = builder.block
        body = builder.append_basic_block("body")
        after = builder.append_basic_block("after")
        if may_be_empty:
            builder.cbranch(builder.icmp_signed(">", count, I64(0)), body, after)
        else:
            builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(I64)
        index.add_incoming(I64(0), before)
        phis = []
        for value in carried:
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            phis.append(phi)
        loop = Loop(index, phis)
        yield loop
        following = builder.add(index, I64(step))
        end = builder.block
        index.add_incoming(following, end)
        for phi, value in zip(phis, loop.results, strict=True):
            phi.add_incoming(value, end)
        builder.cbranch(builder.icmp_signed("<", following, count), body, after)
        builder.position_at_end(after)
        if may_be_empty:
            merged = []
            for value, result in zip(carried, loop.results, strict=True):
                phi = builder.phi(value.type)
                phi.add_incoming(value, before)
                phi.add_incoming(result, end)
                merged.append(phi)
            loop.results = merged


class Loop:
    """A loop: its index, its variables, and their next values."""

    def __init__(self, index: Any, values: list[Any]) -> None:
        self.index = index
        self.values = values
        # Next values of the variables, set by the body. After the loop, their final values.
        self.results: list[Any] = []


class Routine:
    """A function of int64 arguments without a result, written once into each module that uses it."""

    def __init__(self, name: str, arguments: int, body: Callable[..., None]) -> None:
        """Describe a routine.

        Args:
            name: unique among routines.
            arguments: number of arguments.
            body: body(emitter, *arguments) writes the code.
        """
        self._symbol = f"yomi_forward_{name}"
        self._arguments = arguments
        self._body = body

    def call(self, e: Emitter, *values: Any) -> None:
        e.ir.call(self._function(e.ir.module), values)

    def _function(self, module: ir.Module) -> Any:
        if self._symbol in module.globals:
            return module.globals[self._symbol]
        made = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * self._arguments), self._symbol)
        made.linkage = "internal"
        made.attributes.add("noinline")
        builder = ir.IRBuilder(made.append_basic_block("entry"))
        self._body(Emitter(builder), *made.args)
        builder.ret_void()
        return made

    def intrinsic(self) -> Any:
        """Return an intrinsic for kernels: integer arguments, each cast to int64, and no result."""
        names = ", ".join(f"a{i}" for i in range(self._arguments))
        namespace: dict[str, Any] = {"typed": self._typed}
        # numba reads the number of arguments from the signature.
        exec(f"def call(typing_context, {names}):\n    return typed({names})\n", namespace)
        return intrinsic(namespace["call"])

    def _typed(self, *argument_types: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = [context.cast(builder, a, t, types.int64) for a, t in zip(args, signature.args, strict=True)]
            self.call(Emitter(builder), *values)
            return context.get_dummy_value()

        return types.none(*argument_types), codegen


def chosen(routines: Mapping[tuple[int, ...], Routine]) -> Callable[..., None]:
    """Return the body of a routine that calls the routine whose key equals its first arguments, if there is one."""

    def body(e: Emitter, *arguments: Any) -> None:
        for key, routine in routines.items():
            same = [e.ir.icmp_signed("==", value, I64(int(part))) for part, value in zip(key, arguments, strict=False)]
            with e.ir.if_then(functools.reduce(e.ir.and_, same)):
                routine.call(e, *arguments[len(key) :])

    return body
