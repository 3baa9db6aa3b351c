// Tensor core products and asynchronous copies, wrapped in short functions that the stand-in emulates
// (test-plugins/cuda-driver/shim.h). All threads of a warp must call them together.
//
// A product of 16 x 16 and 16 x 8 elements (f32: 16 x 8 and 8 x 8) is added to 16 x 8 accumulators in f32. A thread has
// four accumulators: two in row lane / 4 and two in row lane / 4 + 8, starting at column lane % 4 * 2.
#pragma once
#include "nets.cuh"

// Whether the image's chip has products of bf16 and TF32, and asynchronous copies.
#if defined(KEYWAY_SHIM) || __CUDA_ARCH__ >= 800
#define KEYWAY_SM80 1
#else
#define KEYWAY_SM80 0
#endif

// A thread's fragment of the operands: pairs of neighbouring elements, or single elements of 32 bits.
struct LeftPart {
  u32 pair[4];
};
struct RightPart {
  u32 pair[2];
};
struct Sums {
  float of[4];
};

#ifndef KEYWAY_SHIM
DEV u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
#endif

// Loads four matrices of 8 x 8 elements of 16 bits from shared memory (ldmatrix): lane l provides the address of row l % 8
// of matrix l / 8, aligned to 16 bytes. Each thread receives a pair of each matrix, in row lane / 4; of the transposed
// matrix if `TURNED`.
template <bool TURNED>
DEV void load_matrices(u32 (&to)[4], const u16* row) {
#ifdef KEYWAY_SHIM
  shim_load_matrices(to, row, TURNED);
#else
  if constexpr (TURNED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row)) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row)) : "memory");
  }
#endif
}

// sums += left * right.
template <class T>
struct Cores;

template <>
struct Cores<f16> {
#if KEYWAY_SM80 && !defined(KEYWAY_SHIM)
  DEV u32 paired(float low, float high) {
    u32 made;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(made) : "f"(high), "f"(low));
    return made;
  }
#endif
  DEV void add(Sums& sums, const LeftPart& a, const RightPart& b) {
#ifdef KEYWAY_SHIM
    shim_mma(sums.of, a.pair, b.pair, [](u16 bits) { return Element<f16>::widen(f16{bits}); });
#elif KEYWAY_SM80
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums.of[0]), "+f"(sums.of[1]), "+f"(sums.of[2]), "+f"(sums.of[3])
                 : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "r"(b.pair[0]), "r"(b.pair[1]));
#else
    // The two halves of the reduction dimension in sequence.
#pragma unroll
    for (int half = 0; half < 2; half++) {
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                   : "+f"(sums.of[0]), "+f"(sums.of[1]), "+f"(sums.of[2]), "+f"(sums.of[3])
                   : "r"(a.pair[2 * half]), "r"(a.pair[2 * half + 1]), "r"(b.pair[half]));
    }
#endif
  }
};

template <>
struct Cores<bf16> {
#if KEYWAY_SM80 && !defined(KEYWAY_SHIM)
  DEV u32 paired(float low, float high) {
    u32 made;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(made) : "f"(high), "f"(low));
    return made;
  }
#endif
  DEV void add(Sums& sums, const LeftPart& a, const RightPart& b) {
#ifdef KEYWAY_SHIM
    shim_mma(sums.of, a.pair, b.pair, [](u16 bits) { return Element<bf16>::widen(bf16{bits}); });
#elif KEYWAY_SM80
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums.of[0]), "+f"(sums.of[1]), "+f"(sums.of[2]), "+f"(sums.of[3])
                 : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "r"(b.pair[0]), "r"(b.pair[1]));
#endif
  }
};

// Rounds f32 to TF32, with 10 fraction bits: to nearest, ties away from 0.
DEV u32 tf32(u32 bits) {
#ifdef KEYWAY_SHIM
  return shim_tf32(bits);
#elif KEYWAY_SM80
  u32 made;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(made) : "f"(float_of(bits)));
  return made;
#else
  return bits;
#endif
}

// Operands of f32 are rounded to TF32.
template <>
struct Cores<float> {
  DEV void add(Sums& sums, const LeftPart& a, const RightPart& b) {
#ifdef KEYWAY_SHIM
    shim_mma_tf32(sums.of, a.pair, b.pair);
#elif KEYWAY_SM80
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums.of[0]), "+f"(sums.of[1]), "+f"(sums.of[2]), "+f"(sums.of[3])
                 : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "r"(b.pair[0]), "r"(b.pair[1]));
#endif
  }
};

// Copies 16 bytes from global to shared memory, of which `bytes` are read and the remainder is zero. Both addresses are
// aligned to 16. Copies before a `copies_begun` form a group, which is complete after `copies_arrived` and a barrier; the
// last `LATER` groups may still be in flight.
DEV void copy_16(void* to, const void* from, u32 bytes) {
#ifdef KEYWAY_SHIM
  shim_copy_16(to, from, bytes);
#elif KEYWAY_SM80
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
#else
  // Chips without asynchronous copies copy synchronously.
  u16 made[8];
#pragma unroll
  for (int i = 0; i < 8; i++) made[i] = 2 * i < bytes ? static_cast<const u16*>(from)[i] : (u16)0;
#pragma unroll
  for (int i = 0; i < 8; i++) static_cast<u16*>(to)[i] = made[i];
#endif
}
DEV void copies_begun() {
#ifdef KEYWAY_SHIM
  shim_copies_begun();
#elif KEYWAY_SM80
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
#ifdef KEYWAY_SHIM
template <int LATER>
DEV void copies_arrived(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  shim_copies_arrived(LATER, file, line);
}
#else
template <int LATER>
DEV void copies_arrived() {
#if KEYWAY_SM80
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
#endif
}
#endif

// Loads fragments of operands from shared memory. A left operand is stored by rows of `PITCH` elements along the reduction
// dimension, or along the reduction dimension if `turned`; a right operand by columns along the reduction dimension, or
// along the reduction dimension if `turned`. `at` is the first row or column and the first reduction index.
template <u32 PITCH>
DEV void load_left(LeftPart& to, const u16* from, bool turned) {
  const u32 lane = threadIdx.x % 32;
  if (turned) load_matrices<true>(to.pair, from + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8);
  else load_matrices<false>(to.pair, from + lane % 16 * PITCH + lane / 16 * 8);
}
// Two fragments, of neighbouring columns.
template <u32 PITCH>
DEV void load_right(RightPart (&to)[2], const u16* from, bool turned) {
  const u32 lane = threadIdx.x % 32;
  u32 all[4];
  if (turned) load_matrices<true>(all, from + (lane / 8 % 2 * 8 + lane % 8) * PITCH + lane / 16 * 8);
  else load_matrices<false>(all, from + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8);
  to[0] = RightPart{{all[0], all[1]}};
  to[1] = RightPart{{all[2], all[3]}};
}

// The same for f32, which is rounded to TF32 here.
template <u32 PITCH>
DEV void load_left(LeftPart& to, const u32* from, bool turned) {
  const u32 row = threadIdx.x % 32 / 4, term = threadIdx.x % 4;
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    const u32 r = row + i % 2 * 8, t = term + i / 2 * 4;
    to.pair[i] = tf32(from[turned ? t * PITCH + r : r * PITCH + t]);
  }
}
template <u32 PITCH>
DEV void load_right(RightPart (&to)[2], const u32* from, bool turned) {
  const u32 column = threadIdx.x % 32 / 4, term = threadIdx.x % 4;
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    const u32 c = column + i / 2 * 8, t = term + i % 2 * 4;
    to[i / 2].pair[i % 2] = tf32(from[turned ? t * PITCH + c : c * PITCH + t]);
  }
}

// A pair of rounded values.
template <class T>
DEV u32 paired(float low, float high) {
#if KEYWAY_SM80 && !defined(KEYWAY_SHIM)
  return Cores<T>::paired(low, high);
#else
  return (u32)Element<T>::narrow(low).bits | (u32)Element<T>::narrow(high).bits << 16;
#endif
}
