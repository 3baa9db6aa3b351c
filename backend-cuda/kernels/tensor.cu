// targets: compute_75 compute_80
//
// Kernels of other families on tensor cores: matrix products and convolutions of f16, bf16 and, as TF32, f32; attention of
// f16 and bf16. The host functions of those families launch them if the chip has tensor cores and f32 may be rounded; the
// second launch of split-k sums is that of the family.
#include "attention_plain.cuh"
#include "conv.cuh"
#include "product.cuh"
#include "tensor_tile.cuh"

#define CORES(dtype, T)                                                                                \
  KERNEL(mm_##dtype##_cores, Product) { multiply_by_cores<T>(Matrices<T>{p}, p.shape); }               \
  KERNEL(conv_##dtype##_cores, Convolution) { multiply_by_cores<T>(Gathered<T>{p}, p.shape); }

#define ATTENTION_CORES(dtype, T, width)                                                                        \
  KERNEL(attention_##dtype##_cores_##width, Attention) { attend_by_cores<T, width>(p); }                        \
  KERNEL(attention_##dtype##_query_cores_##width, Attention) { gradient_by_cores<T, width, false>(p); }         \
  KERNEL(attention_##dtype##_key_cores_##width, Attention) { gradient_by_cores<T, width, true>(p); }

#define ATTENTION_PLAIN(dtype, T)                                                            \
  KERNEL(attention_##dtype##_plain_64, Attention) { attend_plain<T, 64, 2, 64>(p); }         \
  KERNEL(attention_##dtype##_plain_128, Attention) { attend_plain<T, 128, 1, 32>(p); }         \
  KERNEL(attention_##dtype##_query_plain_64, Attention) { gradient_plain<T, 64, 64, false>(p); } \
  KERNEL(attention_##dtype##_query_plain_128, Attention) { gradient_plain<T, 128, 32, false>(p); } \
  KERNEL(attention_##dtype##_key_plain_64, Attention) { gradient_plain<T, 64, 64, true>(p); } \
  KERNEL(attention_##dtype##_key_plain_128, Attention) { gradient_plain<T, 128, 16, true>(p); }

CORES(f16, f16)
ATTENTION_CORES(f16, f16, 64)
ATTENTION_CORES(f16, f16, 128)
#if KEYWAY_SM80
CORES(bf16, bf16)
CORES(f32, float)
ATTENTION_PLAIN(f16, f16)
ATTENTION_PLAIN(bf16, bf16)
ATTENTION_CORES(bf16, bf16, 64)
ATTENTION_CORES(bf16, bf16, 128)
#endif
