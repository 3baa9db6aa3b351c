// Binary predicates.
#include "elementwise.cuh"

// Equality is tested first, as the difference of equal infinities is NaN.
template <class R>
DEV bool is_close(R a, R b, R relative, R most, bool nans) {
  const R distance = magnitude_(a - b);
  if (a == b || (is_finite(distance) && distance <= magnitude_(b) * relative + most)) return true;
  return nans && is_nan(a) && is_nan(b);
}

COMPARISON(eq, "TT>T", binary, ALL, a == b)
COMPARISON(ne, "TT>T", binary, ALL, a != b)
COMPARISON(lt, "TT>T", binary, ALL, a < b)
COMPARISON(le, "TT>T", binary, ALL, a <= b)
COMPARISON(gt, "TT>T", binary, ALL, a > b)
COMPARISON(ge, "TT>T", binary, ALL, a >= b)
COMPARISON(logical_and, "TT>T", binary, ALL, a != W(0) && b != W(0))
COMPARISON(logical_or, "TT>T", binary, ALL, a != W(0) || b != W(0))
COMPARISON(logical_xor, "TT>T", binary, ALL, (a != W(0)) != (b != W(0)))
COMPARISON(isclose, "TTffb>T", isclose, FLOATS, is_close(a, b, s0, s1, s2 != W(0)))
