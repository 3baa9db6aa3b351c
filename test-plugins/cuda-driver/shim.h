// What a C++ compiler needs to compile the kernels of backend-cuda for the processor: given before each file by
// `-include`. One thread of this process runs all threads of a block, one after the other; `shim.cpp` has the loop.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#define KEYWAY_SHIM
#define __device__
#define __forceinline__ inline
struct ShimIndex {
  unsigned int x, y, z;
};

// The indices of the thread that runs now.
struct ShimContext {
  ShimIndex thread, block, threads, blocks;
};

struct ShimKernel {
  void (*run)(const void* arguments);
  unsigned long long argument_bytes;
};

extern "C" ShimContext shim_context;
// Holds the thread until all threads of its block that have not ended are here.
void shim_barrier();
// The memory of this size that the block's threads share, named by an address.
void* shim_shared(const void* name, unsigned long long bytes);

#define threadIdx (shim_context.thread)
#define blockIdx (shim_context.block)
#define blockDim (shim_context.threads)
#define gridDim (shim_context.blocks)
#define __syncthreads() shim_barrier()

static inline unsigned int __umulhi(unsigned int a, unsigned int b) {
  return (unsigned int)(((unsigned long long)a * b) >> 32);
}

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}

// One thread runs at a time, so these are atomic.
static inline unsigned long long atomicMin(unsigned long long* at, unsigned long long value) {
  const unsigned long long old = *at;
  if (value < old) *at = value;
  return old;
}
static inline unsigned long long atomicMax(unsigned long long* at, unsigned long long value) {
  const unsigned long long old = *at;
  if (value > old) *at = value;
  return old;
}

static inline float shim_half_to_float(unsigned short bits) {
  _Float16 half;
  std::memcpy(&half, &bits, 2);
  return (float)half;
}

static inline unsigned short shim_float_to_half(float x) {
  const _Float16 half = (_Float16)x;
  unsigned short bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}
