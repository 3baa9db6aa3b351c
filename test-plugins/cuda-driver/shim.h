// Declarations with which a C++ compiler compiles the kernels of backend-cuda for the CPU: included before each file by
// `-include`. One thread of this process runs all threads of a block sequentially; `shim.cpp` has the loop.
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
// Blocks the thread until all unfinished threads of its block have arrived. `place` is the source location of the call as
// `FILE:LINE`; if KEYWAY_STAND_IN_SKIP_BARRIER names it, no thread is blocked: a fault that tests must detect.
void shim_barrier(const char* place);
// Shared memory of the block of this size, identified by an address.
void* shim_shared(const void* name, unsigned long long bytes);

// Blocks the thread until all unfinished threads of its warp have arrived; skipped as above.
void shim_warp_barrier(const char* place);
// A warp shuffle: publishes the value of this thread, and returns that of lane `from`.
void shim_exchange(void* value, unsigned bytes, unsigned from);
unsigned shim_ballot(bool vote);
// A value published by a lane.
struct alignas(32) ShimSlot {
  char bytes[32];
};
// Publishes `bytes` bytes of this thread to its warp, and returns those of all lanes, valid until the thread's next
// exchange.
const ShimSlot* shim_show(const void* value, unsigned bytes);
// The same with a copy. Defined in the header, so that the number of bytes is known at compile time: it dominates the time
// of products.
static inline void shim_gather(const void* value, unsigned bytes, void* all) {
  const ShimSlot* shown = shim_show(value, bytes);
  for (unsigned lane = 0; lane < 32; lane++) std::memcpy(static_cast<char*>(all) + lane * bytes, shown[lane].bytes, bytes);
}
// Checks that an address is aligned to 16 bytes, and, if `shared`, in shared memory; aborts the program otherwise.
void shim_check_16(const void* at, bool shared);
// An asynchronous copy, executed when it is waited for; until then the destination is undefined.
void shim_copy_16(void* to, const void* from, unsigned bytes);
void shim_copies_begun();
// Skipped if KEYWAY_STAND_IN_SKIP_BARRIER names the source location, like the four functions for products below.
void shim_copies_arrived(unsigned later, const char* file, int line);

// The dynamic shared memory of a block, at addresses from 1024; aborts the program if its size is less than `bytes`.
unsigned shim_shared_by_launch(unsigned bytes);
// As shim_copy_16, to an address of dynamic shared memory, which is undefined until the copy has arrived and `shim_written`
// was called.
void shim_copy_to_shared(unsigned to, const void* from, unsigned bytes);
void shim_written(const char* file, int line);
// 16 bits of a matrix in shared memory, by their address before the swizzle.
unsigned short shim_of_matrix(unsigned address);
// A product of a warpgroup, which `make` adds to the sums of this thread. It is computed when it is waited for: until then
// its sums are undefined, and it reads its operands only then.
struct ShimGroupProduct {
  void (*make)(const ShimGroupProduct&);
  float* sums;
  unsigned count;
  // Four registers of A, or null, and the matrix descriptors.
  const unsigned* registers;
  unsigned long long left, right;
  bool more;
};
// Aborts the program if registers were modified since `shim_may_begin`, or the threads of a warpgroup issue different
// products.
void shim_ask_for(const ShimGroupProduct& product);
void shim_may_begin(const char* file, int line);
void shim_begun(const char* file, int line);
void shim_done(const char* file, int line);

#define threadIdx (shim_context.thread)
#define blockIdx (shim_context.block)
#define blockDim (shim_context.threads)
#define gridDim (shim_context.blocks)
#define SHIM_TEXT(line) #line
#define SHIM_PLACE(file, line) file ":" SHIM_TEXT(line)
#define __syncthreads() shim_barrier(SHIM_PLACE(__FILE__, __LINE__))

// Exchanges within a warp: all of its unfinished threads participate, regardless of the mask.
static inline unsigned shim_lane() {
  const ShimContext& c = shim_context;
  return ((c.thread.z * c.threads.y + c.thread.y) * c.threads.x + c.thread.x) % 32;
}
#define __syncwarp() shim_warp_barrier(SHIM_PLACE(__FILE__, __LINE__))
template <class T>
static inline T __shfl_sync(unsigned, T value, int lane) {
  shim_exchange(&value, sizeof(T), unsigned(lane));
  return value;
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return __shfl_sync(mask, value, int(shim_lane() ^ unsigned(bits)));
}
// A nonexistent lane returns the thread's own value.
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
// The warp's load of four 8 x 8 matrices by `ldmatrix`.
static inline void shim_load_matrices(unsigned (&to)[4], const unsigned short* row, bool turned) {
  const unsigned short* rows[32];
  shim_check_16(row, true);
  shim_gather(&row, sizeof(row), rows);
  const unsigned major = shim_lane() / 4, minor = shim_lane() % 4 * 2;
  for (unsigned i = 0; i < 4; i++) {
    const unsigned short low = turned ? rows[8 * i + minor][major] : rows[8 * i + major][minor];
    const unsigned short high = turned ? rows[8 * i + minor + 1][major] : rows[8 * i + major][minor + 1];
    to[i] = unsigned(low) | unsigned(high) << 16;
  }
}
// A lane's fragments of both factors of a product.
struct ShimFactors {
  unsigned left[4], right[2];
};
// The factors of all lanes, until the thread's next exchange.
struct ShimProduct {
  const ShimSlot* shown;
  ShimProduct(const unsigned (&a)[4], const unsigned (&b)[2]) {
    const ShimFactors own = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    shown = shim_show(&own, sizeof(own));
  }
  unsigned at(unsigned lane, unsigned number) const {
    unsigned bits;
    std::memcpy(&bits, shown[lane].bytes + 4 * number, 4);
    return bits;
  }
  unsigned left(unsigned lane, unsigned number) const { return at(lane, number); }
  unsigned right(unsigned lane, unsigned number) const { return at(lane, 4 + number); }
};
// The warp's `mma.sync.m16n8k16`: each thread computes its own sums from the fragments of all threads.
template <class Widen>
static inline void shim_mma(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2], Widen widen) {
  const ShimProduct all(a, b);
  const unsigned row = shim_lane() / 4, column = shim_lane() % 4 * 2;
  for (unsigned k = 0; k < 16; k++) {
    const unsigned holder = k % 8 / 2, half = k / 8, shift = k % 2 * 16;
    const auto of_a = [&](unsigned i) { return widen((unsigned short)(all.left(row * 4 + holder, 2 * half + i) >> shift)); };
    const auto of_b = [&](unsigned i) { return widen((unsigned short)(all.right((column + i) * 4 + holder, half) >> shift)); };
    const float above = of_a(0), below = of_a(1), first = of_b(0), second = of_b(1);
    sums[0] += above * first;
    sums[1] += above * second;
    sums[2] += below * first;
    sums[3] += below * second;
  }
}
// The result of `cvt.rna.tf32.f32`.
static inline unsigned shim_tf32(unsigned bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return (bits + 0x1000u) & ~0x1fffu;
}
// The warp's `mma.sync.m16n8k8` of TF32, which ignores the operands' bits below the 10 bits of the mantissa.
static inline void shim_mma_tf32(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  const ShimProduct all(a, b);
  const auto number = [](unsigned bits) {
    float x;
    bits &= ~0x1fffu;
    std::memcpy(&x, &bits, 4);
    return x;
  };
  const unsigned row = shim_lane() / 4, column = shim_lane() % 4 * 2;
  for (unsigned k = 0; k < 8; k++) {
    const unsigned holder = k % 4, half = k / 4;
    for (unsigned i = 0; i < 4; i++)
      sums[i] += number(all.left(row * 4 + holder, 2 * half + i / 2)) * number(all.right((column + i % 2) * 4 + holder, half));
  }
}
// The warp's part of `wgmma.m64nNk16`: 16 of the 64 rows.
template <class T, float (*widen)(T), unsigned N>
static inline void shim_make(const ShimGroupProduct& p) {
  struct {
    unsigned pair[4];
  } held[32];
  if (p.registers) shim_gather(p.registers, sizeof(held[0]), held);
  const auto part = [](unsigned long long descriptor, unsigned shift) { return unsigned(descriptor >> shift & 0x3fff) << 4; };
  const auto number = [](unsigned bits) { return widen(T{(unsigned short)bits}); };
  const unsigned lane = shim_lane(), rows = shim_context.thread.x / 32 % 4 * 16;
  float left[2][16];
  for (unsigned below = 0; below < 2; below++) {
    for (unsigned k = 0; k < 16; k++) {
      const unsigned row = rows + lane / 4 + 8 * below;
      const unsigned own = held[lane / 4 * 4 + k % 8 / 2].pair[below + k / 8 * 2] >> (k % 2 * 16);
      const unsigned at = part(p.left, 0) + row / 8 * part(p.left, 32) + row % 8 * 128 + k * 2;
      left[below][k] = number(p.registers ? own : shim_of_matrix(at));
    }
  }
  const unsigned first = part(p.right, 0), apart = part(p.right, 16), eight = part(p.right, 32);
  for (unsigned i = 0; i < N / 4; i++) {
    const unsigned column = i / 2 * 8 + lane % 4 * 2 + i % 2;
    float* sums = p.sums + i / 2 * 4 + i % 2;
    if (!p.more) sums[0] = sums[2] = 0;
    for (unsigned k = 0; k < 16; k++) {
      // Stored along k, or along columns.
      const unsigned at = p.registers ? first + column / 64 * apart + k / 8 * eight + k % 8 * 128 + column % 64 * 2
                                      : first + column / 8 * eight + column % 8 * 128 + k * 2;
      const float right = number(shim_of_matrix(at));
      sums[0] += left[0][k] * right;
      sums[2] += left[1][k] * right;
    }
  }
}
template <class T, float (*widen)(T), unsigned N>
static inline void shim_product(float (&sums)[N / 2], const unsigned* registers, unsigned long long left, unsigned long long right,
                                bool more) {
  shim_ask_for(ShimGroupProduct{shim_make<T, widen, N>, sums, N / 2, registers, left, right, more});
}
static inline unsigned __ballot_sync(unsigned, bool vote) { return shim_ballot(vote); }
static inline bool __any_sync(unsigned, bool vote) { return shim_ballot(vote) != 0; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline void __threadfence() {}
static inline void __threadfence_system() {}

// Threads run one at a time, so plain operations are atomic.
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
