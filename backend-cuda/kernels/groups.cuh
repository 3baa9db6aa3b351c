// Products by groups of four warps (`wgmma`, of chips of compute capability 9.0 alone), of operands in shared memory, behind functions
// of a few lines each, which the stand-in emulates (test-plugins/cuda-driver/shim.h). Every thread of a group calls them together.
#pragma once
#include "tensor.cuh"

// The address of the memory that the launch gives a block's threads to share, at a multiple of 1024; the kernel uses so many bytes.
#ifndef KEYWAY_SHIM
extern __shared__ __align__(1024) u8 memory_of_launch[];
#endif
template <u32 BYTES>
DEV u32 shared_by_launch() {
#ifdef KEYWAY_SHIM
  return shim_shared_by_launch(BYTES);
#else
  return shared_address(memory_of_launch);
#endif
}

// As copy_16, to an address of that memory. Products read it behind `written_for_products` and a barrier.
DEV void copy_to_shared(u32 to, const void* from, u32 bytes) {
#ifdef KEYWAY_SHIM
  shim_copy_to_shared(to, from, bytes);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#endif
}

// A matrix there: rows of 128 bytes, whose pieces of 16 are permuted: piece c of row r lies at c ^ r % 8. Eight rows follow each
// other in 1024 bytes. Where the rows are terms, it is `apart` bytes from 64 columns to the next 64.
DEV u64 matrix_in_shared(u32 address, u32 apart) {
  return (u64)(address >> 4 & 0x3fff) | (u64)(apart >> 4 & 0x3fff) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// `written_for_products` stands between copies that have arrived in a thread and products that read them; `products_may_begin` between
// what touches registers and products of these. `products_begun` begins what was asked for, and `products_done` waits for all.
#ifdef KEYWAY_SHIM
DEV void written_for_products(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { shim_written(file, line); }
DEV void products_may_begin(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { shim_may_begin(file, line); }
DEV void products_begun(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { shim_begun(file, line); }
DEV void products_done(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { shim_done(file, line); }
#else
DEV void written_for_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEV void products_may_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void products_begun() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEV void products_done() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
#endif

// Keeps the compiler from moving what touches registers of a product over this place.
#ifdef KEYWAY_SHIM
template <class Registers>
DEV void settled(Registers&) {}
#else
template <u32 COUNT>
DEV void settled(float (&of)[COUNT]) {
#pragma unroll
  for (u32 i = 0; i < COUNT; i++) asm volatile("" : "+f"(of[i])::"memory");
}
template <u32 COUNT>
DEV void settled(u32 (&of)[COUNT][4]) {
#pragma unroll
  for (u32 i = 0; i < 4 * COUNT; i++) asm volatile("" : "+r"(of[i / 4][i % 4])::"memory");
}
#endif

// Products of 64 x 16 and 16 x N elements, added to 64 x N sums in f32, or put there if not `more`. The right operand is in shared
// memory: by columns of terms, as the left one is by rows of them; or by terms, with the left one in registers. A thread's parts are
// those of tensor.cuh, of 16 rows for each warp.
template <class T, u32 N>
struct Group
#ifdef KEYWAY_SHIM
{
  DEV void add(float (&d)[N / 2], u64 left, u64 right, bool more) {
    shim_product<T, Element<T>::widen, N>(d, nullptr, left, right, more);
  }
  DEV void add_by_terms(float (&d)[N / 2], const u32 (&left)[4], u64 right) {
    shim_product<T, Element<T>::widen, N>(d, left, 0, right, true);
  }
};
#else
;

#define REGISTERS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_64 \
  REGISTERS_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SUMS_8(at) \
  "+f"(d[at]), "+f"(d[at + 1]), "+f"(d[at + 2]), "+f"(d[at + 3]), "+f"(d[at + 4]), "+f"(d[at + 5]), "+f"(d[at + 6]), "+f"(d[at + 7])
#define SUMS_32 SUMS_8(0), SUMS_8(8), SUMS_8(16), SUMS_8(24)
#define SUMS_64 SUMS_32, SUMS_8(32), SUMS_8(40), SUMS_8(48), SUMS_8(56)

// `r0` to `r4` name what follows the sums, of which there are `count`.
#define GROUP(T, N, count, r0, r1, r2, r3, r4)                                                                        \
  template <>                                                                                                         \
  struct Group<T, N> {                                                                                                \
    DEV void add(float (&d)[count], u64 left, u64 right, bool more) {                                                 \
      asm volatile("{.reg .pred p; setp.ne.b32 p, " r2 ", 0; wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T \
                   " {" REGISTERS_##count "}, " r0 ", " r1 ", p, 1, 1, 0, 0;}"                                        \
                   : SUMS_##count : "l"(left), "l"(right), "r"((u32)more));                                           \
    }                                                                                                                 \
    DEV void add_by_terms(float (&d)[count], const u32 (&left)[4], u64 right) {                                       \
      asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T    \
                   " {" REGISTERS_##count "}, {" r0 ", " r1 ", " r2 ", " r3 "}, " r4 ", p, 1, 1, 1;}"                 \
                   : SUMS_##count : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));              \
    }                                                                                                                 \
  };
GROUP(f16, 64, 32, "%32", "%33", "%34", "%35", "%36")
GROUP(bf16, 64, 32, "%32", "%33", "%34", "%35", "%36")
GROUP(f16, 128, 64, "%64", "%65", "%66", "%67", "%68")
GROUP(bf16, 128, 64, "%64", "%65", "%66", "%67", "%68")
#endif
