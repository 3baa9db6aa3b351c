// targets: compute_90a
//
// Attention of f16 and bf16 by products of warpgroups, which the host function of attention launches on the chip that has them.
#include "attention_groups.cuh"

// Of heads of 64 numbers the shape that was fastest on an H200; of 128 the one that also lets two blocks share a multiprocessor.
typedef GroupsShape<64, 2, 128, 3, 2> Groups64;
typedef GroupsShape<128, 2, 64, 2, 2> Groups128;

#define ATTENTION_GROUPS(dtype, T, width)                                                                          \
  BOUNDED_KERNEL(attention_##dtype##_groups_##width, Attention, Groups##width::THREADS, Groups##width::BLOCKS) { \
    attend_by_groups<T, Groups##width>(p);                                                                         \
  }

ATTENTION_GROUPS(f16, f16, 64)
ATTENTION_GROUPS(f16, f16, 128)
ATTENTION_GROUPS(bf16, bf16, 64)
ATTENTION_GROUPS(bf16, bf16, 128)
