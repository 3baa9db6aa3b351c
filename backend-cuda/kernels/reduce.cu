// Reductions over any dimensions: one block reduces the elements of each output, or several blocks if there are few
// outputs, whose partial results a second launch combines. The work is split by sizes alone, so that a result is
// bit-identical on every run and every chip.
//
// A line is  REDUCTION(kernel, "signature", host, DTYPES, Type)  where the type defines the accumulator and its operations.
#include "math.cuh"

// The output's and the input's strides over the outputs, and the input's strides over the reduced space.
struct Reduce {
  void* out;
  void* second;
  const void* in;
  void* parts;
  u64 outputs;
  u64 terms;
  u64 count;
  // The number of threads of a block along the outputs; the other threads share the reduced space. Also for the second
  // launch.
  u32 across, across_parts;
  u32 splits;
  // Whether the elements of each output are contiguous and aligned for packs.
  u32 packed;
  Dims<3> outer;
  Dims<1> inner;
};

// The interface of a reducer with accumulators of type Acc: `start`, `load` of an element and its number, `join` of two
// partial results, and `store`.
template <class T>
struct Plain {
  typedef T In;
  // Whether packs are supported: not for long and rarely used code.
  static const bool in_packs = Kind<Wide<T>>::real;
};

template <class T>
struct FloatSum : Plain<T> {
  typedef Wide<T> Acc;
  METHOD static Acc start() { return Acc(0); }
  METHOD static Acc load(Wide<T> x, u64) { return x; }
  METHOD static Acc join(Acc a, Acc b) { return a + b; }
  METHOD static void store(const Reduce& p, i64 at, i64, Acc a) { static_cast<T*>(p.out)[at] = Element<T>::narrow(a); }
};
// NaN elements count as 0.
template <class T>
struct NanSum : FloatSum<T> {
  METHOD static Wide<T> load(Wide<T> x, u64) { return is_nan(x) ? Wide<T>(0) : x; }
};
template <class T>
struct FloatMean : FloatSum<T> {
  typedef Wide<T> Acc;
  METHOD static void store(const Reduce& p, i64 at, i64, Acc a) {
    static_cast<T*>(p.out)[at] = Element<T>::narrow(a / (Acc)p.count);
  }
};
template <class T>
struct FloatProduct : FloatSum<T> {
  typedef Wide<T> Acc;
  METHOD static Acc start() { return Acc(1); }
  METHOD static Acc join(Acc a, Acc b) { return a * b; }
};
// The sum of integers or bools, modulo 2^64.
template <class T>
struct WholeSum : Plain<T> {
  typedef u64 Acc;
  static const bool in_packs = true;
  METHOD static Acc start() { return 0; }
  METHOD static Acc load(T x, u64) { return (u64)x; }
  METHOD static Acc join(Acc a, Acc b) { return a + b; }
  METHOD static void store(const Reduce& p, i64 at, i64, Acc a) { static_cast<u64*>(p.out)[at] = a; }
};
template <class T>
struct WholeProduct : WholeSum<T> {
  typedef u64 Acc;
  static const bool in_packs = false;
  METHOD static Acc start() { return 1; }
  METHOD static Acc join(Acc a, Acc b) { return a * b; }
};
template <class T, bool ALL_OF>
struct Truth : Plain<T> {
  typedef u8 Acc;
  METHOD static Acc start() { return ALL_OF; }
  METHOD static Acc load(Wide<T> x, u64) { return x != Wide<T>(0); }
  METHOD static Acc join(Acc a, Acc b) { return ALL_OF ? a & b : a | b; }
  METHOD static void store(const Reduce& p, i64 at, i64, Acc a) { static_cast<bool*>(p.out)[at] = a != 0; }
};
template <class T>
struct Any : Truth<T, false> {};
template <class T>
struct All : Truth<T, true> {};

// The extreme and its index: the first of equal ones, and NaN before all others. An index of -1 marks the empty reduction.
template <class T, bool MAX>
struct Extreme : Plain<T> {
  struct Acc {
    Wide<T> value;
    i64 number;
  };
  METHOD static Acc start() { return Acc{Wide<T>(0), -1}; }
  METHOD static Acc load(Wide<T> x, u64 number) { return Acc{x, (i64)number}; }
  METHOD static Acc join(Acc a, Acc b) {
    if (a.number < 0) return b;
    if (b.number < 0) return a;
    const bool a_nan = is_nan(a.value), b_nan = is_nan(b.value);
    if (a_nan || b_nan) return a_nan && (!b_nan || a.number < b.number) ? a : b;
    if (a.value == b.value) return a.number < b.number ? a : b;
    return (MAX ? a.value > b.value : a.value < b.value) ? a : b;
  }
  METHOD static void store(const Reduce& p, i64 at, i64 second, Acc a) {
    if (p.out != nullptr) static_cast<T*>(p.out)[at] = Element<T>::narrow(a.value);
    if (p.second != nullptr) static_cast<i64*>(p.second)[second] = a.number;
  }
};
template <class T>
struct Largest : Extreme<T, true> {};
template <class T>
struct Smallest : Extreme<T, false> {};
// The number of threads of a block.
constexpr u32 THREADS = 256;
// The number of elements that a thread loads before it uses the first, and the number of its accumulators.
constexpr int ELEMENTS = 8;

// Elements that are loaded as one pack; fewer of one byte, since the code is unrolled.
template <class T>
using Loaded = Pack<T, sizeof(T) == 1 ? 8 : 16 / sizeof(T)>;

// Reduces over the block's threads for each output, with the result in threads `threadIdx.x < across`.
template <class R>
DEV typename R::Acc over_block(typename R::Acc own, u32 across) {
  SHARED(typename R::Acc, shared, THREADS);
  shared[threadIdx.x] = own;
  for (u32 half = THREADS / 2; half >= across; half >>= 1) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = R::join(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  return shared[threadIdx.x];
}

template <class R>
struct Sums {
  typedef typename R::In T;
  typename R::Acc at[ELEMENTS];
  METHOD Sums() {
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) at[i] = R::start();
  }
  METHOD void add(int i, T x, u64 term) { at[i] = R::join(at[i], R::load(Element<T>::widen(x), term)); }
  METHOD void add_pack(const Loaded<T>& pack, u64 first) {
#pragma unroll
    for (int i = 0; i < Loaded<T>::count; i++) add(i, pack.at[i], first + i);
  }
  METHOD typename R::Acc whole() {
#pragma unroll
    for (int half = ELEMENTS / 2; half > 0; half >>= 1) {
#pragma unroll
      for (int i = 0; i < half; i++) at[i] = R::join(at[i], at[i + half]);
    }
    return at[0];
  }
};

// The elements `begin`, `begin + step`, .. of an output.
template <class R>
DEV typename R::Acc over_terms(const Reduce& p, const typename R::In* in, u64 begin, u64 step) {
  typedef typename R::In T;
  Sums<R> sums;
  u64 term = begin;
  bool is_done = false;
  if constexpr (R::in_packs) {
    if (p.packed) {
      constexpr int V = Loaded<T>::count, AHEAD = V > 4 ? 2 : 4;
      const Loaded<T>* packs = reinterpret_cast<const Loaded<T>*>(in);
      const u64 count = p.terms / V;
      for (; term + (AHEAD - 1) * step < count; term += AHEAD * step) {
        Loaded<T> own[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) own[i] = packs[term + i * step];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) sums.add_pack(own[i], (term + i * step) * V);
      }
#pragma unroll 1
      for (; term < count; term += step) sums.add_pack(packs[term], term * V);
      term = count * V + begin;
      is_done = true;
    }
  }
  if (!is_done && p.inner.ndim <= 1) {
    const i64 stride = p.inner.ndim == 0 ? 0 : p.inner.stride[0][0];
    for (; term + (ELEMENTS - 1) * step < p.terms; term += ELEMENTS * step) {
      T own[ELEMENTS];
#pragma unroll
      for (int i = 0; i < ELEMENTS; i++) own[i] = in[(i64)(term + i * step) * stride];
#pragma unroll
      for (int i = 0; i < ELEMENTS; i++) sums.add(i, own[i], term + i * step);
    }
  }
#pragma unroll 1
  for (; term < p.terms; term += step) {
    i64 from[1];
    p.inner.offsets((u32)term, from);
    sums.add(0, in[from[0]], term);
  }
  return sums.whole();
}

template <class R>
DEV void reduce(const Reduce& p) {
  typedef typename R::Acc Acc;
  const u32 lane = threadIdx.x / p.across, lanes = THREADS / p.across;
  const u64 output = (u64)blockIdx.x * p.across + threadIdx.x % p.across;
  Acc sum = R::start();
  i64 at[3] = {0, 0, 0};
  if (output < p.outputs) {
    p.outer.offsets((u32)output, at);
    const typename R::In* in = static_cast<const typename R::In*>(p.in) + at[2];
    sum = over_terms<R>(p, in, (u64)blockIdx.y * lanes + lane, (u64)lanes * p.splits);
  }
  const Acc whole = over_block<R>(sum, p.across);
  if (threadIdx.x >= p.across || output >= p.outputs) return;
  if (p.splits == 1) R::store(p, at[0], at[1], whole);
  else static_cast<Acc*>(p.parts)[blockIdx.y * p.outputs + output] = whole;
}

// The second launch, over the partial results of each output.
template <class R>
DEV void finish(const Reduce& p) {
  typedef typename R::Acc Acc;
  const u32 lane = threadIdx.x / p.across_parts, lanes = THREADS / p.across_parts;
  const u64 output = (u64)blockIdx.x * p.across_parts + threadIdx.x % p.across_parts;
  const Acc* parts = static_cast<const Acc*>(p.parts) + output;
  Acc sum = R::start();
  if (output < p.outputs) {
#pragma unroll 8
    for (u32 part = lane; part < p.splits; part += lanes) sum = R::join(sum, parts[part * p.outputs]);
  }
  const Acc whole = over_block<R>(sum, p.across_parts);
  if (threadIdx.x >= p.across_parts || output >= p.outputs) return;
  i64 at[3];
  p.outer.offsets((u32)output, at);
  R::store(p, at[0], at[1], whole);
}

#define REDUCTION(name, signature, host, dtypes, Type) dtypes(ENTRIES_OF_##Type, name)
#define REDUCTION_ENTRIES(name, dtype, R)                    \
  KERNEL(name##_##dtype##_reduce, Reduce) { reduce<R>(p); }  \
  KERNEL(name##_##dtype##_finish, Reduce) { finish<R>(p); }
#define ENTRIES_OF_FloatSum(dtype, T, name) REDUCTION_ENTRIES(name, dtype, FloatSum<T>)
// Its partial results are combined by `sum`.
#define ENTRIES_OF_NanSum(dtype, T, name) KERNEL(name##_##dtype##_reduce, Reduce) { reduce<NanSum<T>>(p); }
#define ENTRIES_OF_FloatMean(dtype, T, name) REDUCTION_ENTRIES(name, dtype, FloatMean<T>)
#define ENTRIES_OF_FloatProduct(dtype, T, name) REDUCTION_ENTRIES(name, dtype, FloatProduct<T>)
#define ENTRIES_OF_WholeSum(dtype, T, name) REDUCTION_ENTRIES(name, dtype, WholeSum<T>)
#define ENTRIES_OF_WholeProduct(dtype, T, name) REDUCTION_ENTRIES(name, dtype, WholeProduct<T>)
#define ENTRIES_OF_Any(dtype, T, name) REDUCTION_ENTRIES(name, dtype, Any<T>)
#define ENTRIES_OF_All(dtype, T, name) REDUCTION_ENTRIES(name, dtype, All<T>)
#define ENTRIES_OF_Largest(dtype, T, name) REDUCTION_ENTRIES(name, dtype, Largest<T>)
#define ENTRIES_OF_Smallest(dtype, T, name) REDUCTION_ENTRIES(name, dtype, Smallest<T>)

REDUCTION(sum, "TIb>T", over_dims, FLOATS, FloatSum)
REDUCTION(sum, "TIb>T", over_dims, INTS_BOOL, WholeSum)
REDUCTION(nansum, "TIb>T", over_dims, FLOATS, NanSum)
REGISTER(nansum, "TIb>T", sum_of_wholes, INTS_BOOL)
REDUCTION(mean, "TIb>T", over_dims, FLOATS, FloatMean)
REDUCTION(prod, "TIb>T", over_dims, FLOATS, FloatProduct)
REDUCTION(prod, "TIb>T", over_dims, INTS_BOOL, WholeProduct)
REDUCTION(amax, "TIb>T", over_dims, ALL, Largest)
REDUCTION(amin, "TIb>T", over_dims, ALL, Smallest)
REDUCTION(any, "TIb>T", over_dims, ALL, Any)
REDUCTION(all, "TIb>T", over_dims, ALL, All)
// The indices with or without the values: the kernels of `amax` and `amin`, which write the requested outputs.
REGISTER(max, "Tib>TT", place, ALL)
REGISTER(min, "Tib>TT", place, ALL)
REGISTER(argmax, "Tib>T", place, ALL)
REGISTER(argmin, "Tib>T", place, ALL)
