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
// Holds the thread until all threads of its block that have not ended are here. The place of the call is `FILE:LINE`; where
// KEYWAY_STAND_IN_SKIP_BARRIER names it, nobody is held: a fault that tests must see.
void shim_barrier(const char* place);
// The memory of this size that the block's threads share, named by an address.
void* shim_shared(const void* name, unsigned long long bytes);

// Holds it until all threads of its warp that have not ended wait so.
void shim_warp_barrier();
// Gives the value of this thread to its warp, and takes that of a lane.
void shim_exchange(void* value, unsigned bytes, unsigned from);
unsigned shim_ballot(bool vote);

#define threadIdx (shim_context.thread)
#define blockIdx (shim_context.block)
#define blockDim (shim_context.threads)
#define gridDim (shim_context.blocks)
#define SHIM_TEXT(line) #line
#define SHIM_PLACE(file, line) file ":" SHIM_TEXT(line)
#define __syncthreads() shim_barrier(SHIM_PLACE(__FILE__, __LINE__))

// Exchanges within a warp: all of its threads that have not ended take part, whatever the mask says.
static inline unsigned shim_lane() {
  const ShimContext& c = shim_context;
  return ((c.thread.z * c.threads.y + c.thread.y) * c.threads.x + c.thread.x) % 32;
}
static inline void __syncwarp(unsigned = 0xffffffffu) { shim_warp_barrier(); }
template <class T>
static inline T __shfl_sync(unsigned, T value, int lane) {
  shim_exchange(&value, sizeof(T), unsigned(lane));
  return value;
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return __shfl_sync(mask, value, int(shim_lane() ^ unsigned(bits)));
}
// A lane that the warp has not gives the thread its own value.
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta) {
  const unsigned lane = shim_lane() + delta;
  return __shfl_sync(mask, value, int(lane < 32 ? lane : shim_lane()));
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta) {
  const unsigned lane = shim_lane();
  return __shfl_sync(mask, value, int(lane >= delta ? lane - delta : lane));
}
static inline unsigned __ballot_sync(unsigned, bool vote) { return shim_ballot(vote); }
static inline bool __any_sync(unsigned, bool vote) { return shim_ballot(vote) != 0; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline void __threadfence() {}

// One thread runs at a time, so that plain operations are atomic.
template <class T>
static inline T atomicAdd(T* at, T value) {
  const T old = *at;
  *at = T(old + value);
  return old;
}
template <class T>
static inline T atomicMax(T* at, T value) {
  const T old = *at;
  if (value > old) *at = value;
  return old;
}
template <class T>
static inline T atomicMin(T* at, T value) {
  const T old = *at;
  if (value < old) *at = value;
  return old;
}
template <class T>
static inline T atomicOr(T* at, T value) {
  const T old = *at;
  *at = T(old | value);
  return old;
}
template <class T>
static inline T atomicExch(T* at, T value) {
  const T old = *at;
  *at = value;
  return old;
}
template <class T>
static inline T atomicCAS(T* at, T expected, T value) {
  const T old = *at;
  if (old == expected) *at = value;
  return old;
}

static inline unsigned int __umulhi(unsigned int a, unsigned int b) {
  return (unsigned int)(((unsigned long long)a * b) >> 32);
}

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
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
