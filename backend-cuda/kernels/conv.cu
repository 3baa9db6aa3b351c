// Convolutions and their gradients: products of matrices of which one is gathered from an image as it is needed. The
// kernel is the same for all three, since which element of the image a term reads is a sum of what the column and what
// the term say, in each dimension.
#include "conv.cuh"

#define CONVOLUTION(name, signature, host, dtypes) dtypes(CONVOLUTION_ENTRIES, name)
#define CONVOLUTION_ENTRIES(dtype, T, name)                                                             \
  KERNEL(name##_##dtype##_tile, Convolution) { multiply(Gathered<T>{p}, p.shape); }                     \
  KERNEL(name##_##dtype##_finish, Convolution) { add_parts(Gathered<T>{p}, p.shape); }

CONVOLUTION(conv, "TTOIIIi>T", conv, FLOATS)
REGISTER(conv_input_grad, "TTIIIIi>T", conv_input_grad, FLOATS)
REGISTER(conv_weight_grad, "TTIIIIi>T", conv_weight_grad, FLOATS)
