// Binary element-wise functions.
#include "elementwise.cuh"

BINARY(add, "TTs>T", scaled_sum, ALL, plus(a, times(s0, b)))
BINARY(sub, "TTs>T", scaled_sum, NUMBERS, minus(a, times(s0, b)))
BINARY(mul, "TT>T", exact, ALL, times(a, b))
BINARY(div, "TTS>T", quotient, FLOATS, a / b)
BINARY(div_trunc, "", quotient, NUMBERS, trunc_quotient(a, b))
BINARY(div_floor, "", quotient, NUMBERS, floor_quotient(a, b))
REGISTER(div, "TTS>T", whole_quotient, INTS)
BINARY(fmod, "TT>T", remainder, NUMBERS, trunc_remainder(a, b))
BINARY(remainder, "TT>T", remainder, NUMBERS, floor_remainder(a, b))
BINARY(pow, "TT>T", power, NUMBERS, power(a, b))
BINARY(atan2, "TT>T", exact, FLOATS, atan2_(a, b))
BINARY(maximum, "TT>T", binary, ALL, larger(a, b))
BINARY(minimum, "TT>T", binary, ALL, smaller(a, b))

BINARY(bitwise_and, "TT>T", binary, INTS_BOOL, W(a & b))
BINARY(bitwise_or, "TT>T", binary, INTS_BOOL, W(a | b))
BINARY(bitwise_xor, "TT>T", binary, INTS_BOOL, W(a ^ b))
BINARY(bitwise_left_shift, "TT>T", binary, INTS, shift_left(a, b))
BINARY(bitwise_right_shift, "TT>T", binary, INTS, shift_right(a, b))

BINARY(relu_backward, "TT>T", binary, FLOATS, b <= W(0) ? W(0) : a)
BINARY(sigmoid_backward, "TT>T", binary, FLOATS, a * sigmoid_slope(b))
BINARY(tanh_backward, "TT>T", binary, FLOATS, a * (W(4) * sigmoid_slope(b + b)))
BINARY(silu_backward, "TT>T", binary, FLOATS, silu_gradient(a, b))
BINARY(gelu_backward, "TTS>T", gelu_backward, FLOATS, gelu_gradient(a, b))
BINARY(gelu_backward_tanh, "", gelu_backward, FLOATS, gelu_tanh_gradient(a, b))

BINARY(prelu, "TT>T", prelu, FLOATS, a > W(0) ? a : a * b)
BINARY(glu, "Ti>T", glu, FLOATS, a * sigmoid_of(b))
