// Included by every kernel file: element types, strided operands, and the macro that declares a kernel.
//
// No NVIDIA headers are included, so that the compiler library suffices. The same source is compiled for the CPU by a C++
// compiler, after `shim.h` of test-plugins/cuda-driver, which defines KEYWAY_SHIM.
#pragma once

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define DEV static __device__ __forceinline__
#define METHOD __device__ __forceinline__
// A function that is not inlined, as it has many call sites.
#ifdef KEYWAY_SHIM
#define CALLED static
#else
#define CALLED static __device__ __noinline__
#endif

// Declares a kernel with one structure as its parameter: `KERNEL(name, Arguments) { .. p.field .. }`. The structure is
// declared in Rust with the same fields; its size is compared with that in the image when the kernel is loaded.
// BOUNDED_KERNEL sets launch bounds: threads per block, and the number of blocks that share a multiprocessor.
#ifdef KEYWAY_SHIM
#define KERNEL(name, Arguments)                                                                  \
  static void name##_body(const Arguments& p);                                                   \
  static void name##_run(const void* p) { name##_body(*static_cast<const Arguments*>(p)); }      \
  extern "C" __attribute__((visibility("default"))) const ShimKernel name##_shim = {name##_run, sizeof(Arguments)}; \
  static void name##_body(const Arguments& p)
#define BOUNDED_KERNEL(name, Arguments, threads, blocks) KERNEL(name, Arguments)
#else
#define KERNEL(name, Arguments) extern "C" __global__ void name(const __grid_constant__ Arguments p)
#define BOUNDED_KERNEL(name, Arguments, threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Arguments p)
#endif

// `SHARED(T, name, count)` declares uninitialised shared memory of a block. Constructors of T do not run.
#ifdef KEYWAY_SHIM
#define SHARED(T, name, count)   \
  static const char name##_tag = 0; \
  T* const name = static_cast<T*>(shim_shared(&name##_tag, sizeof(T) * (count)))
#else
#define SHARED(T, name, count)                                 \
  __shared__ __align__(16) u8 name##_memory[sizeof(T) * (count)]; \
  T* const name = reinterpret_cast<T*>(name##_memory)
#endif

// f16 and bf16 as stored; arithmetic is in f32.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

DEV u32 bits_of(float x) {
#ifdef KEYWAY_SHIM
  u32 bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
#else
  return __float_as_uint(x);
#endif
}

DEV float float_of(u32 bits) {
#ifdef KEYWAY_SHIM
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
#else
  return __uint_as_float(bits);
#endif
}

DEV double double_of(u64 bits) {
#ifdef KEYWAY_SHIM
  double x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
#else
  return __longlong_as_double((i64)bits);
#endif
}

DEV u64 bits_of_double(double x) {
#ifdef KEYWAY_SHIM
  u64 bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
#else
  return (u64)__double_as_longlong(x);
#endif
}

// The compute type of elements of T, and the conversions. A conversion to a narrower type rounds to nearest, ties to even.
template <class T>
struct Element {
  typedef T Wide;
  DEV T widen(T x) { return x; }
  DEV T narrow(T x) { return x; }
};

template <>
struct Element<f16> {
  typedef float Wide;
  DEV float widen(f16 x) {
#ifdef KEYWAY_SHIM
    return shim_half_to_float(x.bits);
#else
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
#endif
  }
  DEV f16 narrow(float x) {
#ifdef KEYWAY_SHIM
    return f16{shim_float_to_half(x)};
#else
    f16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(x));
    return half;
#endif
  }
};

template <>
struct Element<bf16> {
  typedef float Wide;
  DEV float widen(bf16 x) { return float_of((u32)x.bits << 16); }
  DEV bf16 narrow(float x) {
    const u32 bits = bits_of(x);
    if (x != x) return bf16{(u16)(bits >> 16 | 0x40)};
    return bf16{(u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  }
};

template <class T>
using Wide = typename Element<T>::Wide;

// The accumulation type of sums of any number of addends, and of sums of powers.
template <class W>
struct LongOf {
  typedef W Type;
};
template <>
struct LongOf<float> {
  typedef double Type;
};
template <class W>
using Long = typename LongOf<W>::Type;

// Elements that are moved as one word; `Piece` has 16 bytes, the maximum.
template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  static const int count = V;
  T at[V];
};
template <class T>
using Piece = Pack<T, 16 / sizeof(T)>;

// A scalar that the host passed as bits, in the compute type.
template <class W>
struct Immediate {
  DEV W of(u64 bits) { return (W)bits; }
};
template <>
struct Immediate<float> {
  DEV float of(u64 bits) { return float_of((u32)bits); }
};
template <>
struct Immediate<double> {
  DEV double of(u64 bits) { return double_of(bits); }
};
template <>
struct Immediate<bool> {
  DEV bool of(u64 bits) { return bits != 0; }
};

// Division by a launch constant, by multiplication, for dividends below 2^31.
struct Divisor {
  u32 value, magic, shift;
  METHOD u32 quotient(u32 n) const { return (__umulhi(n, magic) + n) >> shift; }
};

// Up to 8 dimensions, innermost first, with the stride of each of N operands in elements.
template <int N>
struct Dims {
  u32 ndim;
  Divisor size[8];
  i64 stride[8][N];

  // The offset of each operand's element at a linear index over these dimensions.
  METHOD void offsets(u32 at, i64 (&offset)[N]) const {
#pragma unroll
    for (int k = 0; k < N; k++) offset[k] = 0;
    u32 d = 0;
#pragma unroll 1
    for (; d + 1 < ndim; d++) {
      const u32 next = size[d].quotient(at), index = at - next * size[d].value;
      at = next;
#pragma unroll
      for (int k = 0; k < N; k++) offset[k] += (i64)index * stride[d][k];
    }
    // The outermost dimension has the remaining quotient.
#pragma unroll
    for (int k = 0; k < N; k++) offset[k] += (i64)at * stride[d][k];
  }
};

// The macros that apply `M(dtype, Type, argument)` to a list of dtypes. The build script also parses their names and
// dtypes.
#define BOOL(M, x) M(bool, bool, x)
#define FLOATS(M, x) M(f16, f16, x) M(bf16, bf16, x) M(f32, float, x) M(f64, double, x)
#define SIGNED(M, x) M(i8, i8, x) M(i16, i16, x) M(i32, i32, x) M(i64, i64, x)
#define UNSIGNED(M, x) M(u8, u8, x) M(u16, u16, x) M(u32, u32, x) M(u64, u64, x)
#define INTS(M, x) SIGNED(M, x) UNSIGNED(M, x)
#define INTS_BOOL(M, x) INTS(M, x) BOOL(M, x)
#define NUMBERS(M, x) FLOATS(M, x) INTS(M, x)
#define ALL(M, x) NUMBERS(M, x) BOOL(M, x)
// By element size, for kernels that only move elements.
#define BITS(M, x) M(b8, u8, x) M(b16, u16, x) M(b32, u32, x) M(b64, u64, x)

// A line for the build script: an op with kernels in another file.
#define REGISTER(op, signature, host, dtypes)
// As REGISTER, for an op with data-dependent output sizes, whose host function allocates the outputs.
#define REGISTER_ALLOCATING(op, signature, host, dtypes)
// As REGISTER_ALLOCATING, for sparse_coo tensors.
#define REGISTER_COO(op, signature, host, dtypes)
