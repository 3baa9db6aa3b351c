// Warpgroup products (`wgmma`, compute capability 9.0 alone) of operands in shared memory, wrapped in short functions that
// the stand-in emulates (test-plugins/cuda-driver/shim.h). All threads of a warpgroup must call them together.
#pragma once
#include "tensor.cuh"

// The address of the launch's dynamic shared memory, aligned to 1024; the kernel uses `bytes` bytes.
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

// As copy_16, to a shared memory address. Products must read it after `written_for_products` and a barrier.
DEV void copy_to_shared(u32 to, const void* from, u32 bytes) {
#ifdef KEYWAY_SHIM
  shim_copy_to_shared(to, from, bytes);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#endif
}

// The descriptor of a matrix in shared memory: rows of 128 bytes with a 128-byte swizzle (piece c of 16 bytes of row r is
// at c ^ r % 8); eight consecutive rows occupy 1024 bytes. If rows are along the reduction dimension, `apart` is the stride
// in bytes between blocks of 64 columns.
DEV u64 matrix_in_shared(u32 address, u32 apart) {
  return (u64)(address >> 4 & 0x3fff) | (u64)(apart >> 4 & 0x3fff) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// Fences: `written_for_products` between completed copies and products that read them; `products_may_begin` between
// accesses to registers and products that use them. `products_begun` commits the submitted products, and `products_done`
// waits for all.
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

// A compiler fence for registers that products use.
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

// Adds the product of 64 x 16 and 16 x N elements to 64 x N accumulators in f32, or overwrites them if not `more`. The
// right operand is in shared memory, stored by columns like the left one by rows; or stored along the reduction dimension,
// with the left one in registers. A thread's fragment is that of tensor.cuh, of 16 rows per warp.
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

// `r0` to `r4` are the operand numbers after the `count` accumulators.
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
