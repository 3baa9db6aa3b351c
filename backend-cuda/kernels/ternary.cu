// Ternary element-wise functions, and selections.
#include "elementwise.cuh"

template <class R>
CALLED R gate_gradient(R gradient, R x, R gate) {
  return gradient * sigmoid_slope(gate) * x;
}

TERNARY(lerp, "TTT>T", ternary, FLOATS, between(a, b, c))
TERNARY(addcmul, "TTTs>T", scaled3, NUMBERS, plus(a, times(times(s0, b), c)))
TERNARY(addcdiv, "TTTs>T", scaled3, FLOATS, a + s0 * b / c)
// The gradient of the second half; that of the first is `glu` of the gradient and the second half.
TERNARY(glu_backward, "TTi>T", glu_backward, FLOATS, gate_gradient(a, b, c))

// Selections move elements by size alone.
FUNCTION(where, 3, W, (bool a, W b, W c), a ? b : c)
#define WHERE_ENTRIES(bits, T, name) PACKED_ENTRIES(name##_##bits, 4, name##_function<T>, T, bool, T, T)
BITS(WHERE_ENTRIES, where)
REGISTER(where, "TTT>T", choice, ALL)

FUNCTION(masked_fill, 3, W, (W a, bool b, W c), b ? c : a)
#define MASKED_FILL_ENTRIES(bits, T, name) PACKED_ENTRIES(name##_##bits, 4, name##_function<T>, T, T, bool, T)
BITS(MASKED_FILL_ENTRIES, masked_fill)
REGISTER(masked_fill, "TTT>T", choice, ALL)
