// Less frequent activation functions, and gradients of activation functions.
#include "elementwise.cuh"

template <class R>
CALLED R soft_plus_gradient(R gradient, R x, R threshold) { return x > threshold ? gradient : gradient * sigmoid_of(x); }
template <class R>
DEV R hard_swish_gradient(R gradient, R x) {
  if (x <= R(-3)) return R(0);
  return x >= R(3) ? gradient : gradient * ((x + x + R(3)) * R(1.0 / 6));
}

// Products with 0, so that NaN propagates.
template <class R>
DEV R soft_shrink(R x, R bound) { return x > bound ? x - bound : x < -bound ? x + bound : x * R(0); }
// A bound of 0 has no effect, also at 0.
template <class R>
DEV R soft_shrink_gradient(R gradient, R x, R bound) {
  return x <= bound && x >= -bound && bound != R(0) ? R(0) : gradient;
}

UNARY(softshrink, "Ts>T", scaled, FLOATS, soft_shrink(x, s0))

PLAIN_BINARY(softplus_backward, "TTss>T", scaled_gradient, FLOATS, soft_plus_gradient(a, b * s0, s1))
PLAIN_BINARY(hardswish_backward, "TT>T", gradient, FLOATS, hard_swish_gradient(a, b))
PLAIN_BINARY(softshrink_backward, "TTs>T", scaled_gradient, FLOATS, soft_shrink_gradient(a, b, s0))
