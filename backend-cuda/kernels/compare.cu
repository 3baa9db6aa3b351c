// Questions about two elements.
#include "elementwise.cuh"

COMPARISON(eq, "TT>T", binary, ALL, a == b)
COMPARISON(ne, "TT>T", binary, ALL, a != b)
COMPARISON(lt, "TT>T", binary, ALL, a < b)
COMPARISON(le, "TT>T", binary, ALL, a <= b)
COMPARISON(gt, "TT>T", binary, ALL, a > b)
COMPARISON(ge, "TT>T", binary, ALL, a >= b)
COMPARISON(logical_and, "TT>T", binary, ALL, a != W(0) && b != W(0))
COMPARISON(logical_or, "TT>T", binary, ALL, a != W(0) || b != W(0))
COMPARISON(logical_xor, "TT>T", binary, ALL, (a != W(0)) != (b != W(0)))
