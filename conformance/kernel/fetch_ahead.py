"""The instruction by which a processor fetches a row of a table before it is asked for.

Rule of this file: nothing depends on it but time, so what stands for it in the uncompiled text does nothing.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

READ, KEEP, DATA = 0, 3, 1
"""What LLVM is told: to be read, near the processor, no instructions."""


def _prefetch(_typing: Any, table: Any, row: Any) -> Any:
    tools: Any = cgutils

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        array = context.make_array(table)(context, builder, arguments[0])
        at = [arguments[1], ir.Constant(arguments[1].type, 0)]
        place = builder.bitcast(tools.get_item_pointer(context, builder, table, array, at), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        prefetch = tools.get_or_insert_function(builder.module, takes, "llvm.prefetch.p0i8")
        builder.call(prefetch, [place, *(number(said) for said in (READ, KEEP, DATA))])
        return context.get_dummy_value()

    return types.void(table, row), code


prefetch: Any = intrinsic(_prefetch)
"""Fetches the first column of a row of a table. A row that is not there does no harm: the instruction fails silently."""
