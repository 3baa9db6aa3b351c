// targets: compute_90a
//
// Attention of f16 and bf16 by warpgroup products (wgmma); the host function of attention launches it on chips that have
// them.
#include "attention_groups.cuh"

// The tiling for head dimension 64 was the fastest on an H200; the one for 128 allows two blocks per multiprocessor.
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
