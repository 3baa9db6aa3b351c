// The element-wise engine: each kernel is one line with an expression, and has two entry points per dtype. `_dense` is for
// operands that are contiguous in the same order, or scalars, and moves packs of 16 bytes; `_strided` supports any strides,
// and moves packs along the innermost dimension if it is dense and the kernel is cheap.
//
// A line is  MACRO(kernel, "signature", host, DTYPES, expression)  and is also parsed by the build script, which registers
// the op of the kernel's name with the host function of that name in Rust. An empty signature registers nothing: the kernel
// is a variant that the host function of another line selects. The expression is over x (one argument), a and b (two) or a,
// b and c (three), and the scalars s0, s1 and s2, all in the compute type.
#pragma once
#include "math.cuh"

// A broadcast scalar: `data` is null and `value` has its bits, or `once` is set and it is read from `data`.
struct Operand {
  void* data;
  u64 value;
  u64 once;
};

// An error report of a kernel, in host memory. If several threads report, one of the values is stored.
struct Report {
  u64 wrong;
  i64 value;
};
DEV void report(Report* to, i64 value) {
  *(volatile i64*)&to->value = value;
  __threadfence_system();
  *(volatile u64*)&to->wrong = 1;
}

template <int N>
struct Dense {
  Operand operand[N];
  u64 scalar[3];
  u64 count;
};

template <int N>
struct Strided {
  Operand operand[N];
  u64 scalar[3];
  u64 count;
  // The number of threads with a pack: along the innermost dimension an operand is dense, or is `once` one element.
  // Otherwise a thread has one element and, if the kernel supports packs, a second element one grid further on.
  u64 packs;
  Dims<N> dims;
};

// A placeholder for an absent argument.
struct Absent {};
template <>
struct Element<Absent> {
  typedef Absent Wide;
};

template <class T>
DEV Wide<T> read(const Operand& from, i64 offset) {
  if (from.data == nullptr) return Immediate<Wide<T>>::of(from.value);
  return Element<T>::widen(static_cast<const T*>(from.data)[offset]);
}
template <class T>
DEV void write(const Operand& to, i64 offset, Wide<T> value) {
  static_cast<T*>(to.data)[offset] = Element<T>::narrow(value);
}

// The elements starting at `first`, or the single element of a scalar operand.
template <class T, int V>
struct Values {
  Wide<T> at[V];
  METHOD Values(const Operand& from, u64 first, i64 only) {
    if (V == 1 || from.data == nullptr || from.once) {
      const Wide<T> value = read<T>(from, only);
#pragma unroll
      for (int i = 0; i < V; i++) at[i] = value;
    } else {
      const Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(from.data) + first);
#pragma unroll
      for (int i = 0; i < V; i++) at[i] = Element<T>::widen(pack.at[i]);
    }
  }
};
template <int V>
struct Values<Absent, V> {
  METHOD Values(const Operand&, u64, i64) {}
};

template <class T>
struct Size {
  static const int bytes = sizeof(T);
};
template <>
struct Size<Absent> {
  static const int bytes = 1;
};
template <class O, class A, class B, class C>
struct Lanes {
  static const int ab = Size<A>::bytes > Size<B>::bytes ? Size<A>::bytes : Size<B>::bytes;
  static const int oc = Size<O>::bytes > Size<C>::bytes ? Size<O>::bytes : Size<C>::bytes;
  static const int count = 16 / (ab > oc ? ab : oc);
};

template <class F, class A, class B, class C, int V>
DEV auto apply(const F& f, const Values<A, V>& a, const Values<B, V>& b, const Values<C, V>& c, int i) {
  if constexpr (F::inputs == 1) return f(a.at[i]);
  else if constexpr (F::inputs == 2) return f(a.at[i], b.at[i]);
  else return f(a.at[i], b.at[i], c.at[i]);
}

template <class F, class O, class A, class B, class C, int N>
DEV void dense(const Dense<N>& p) {
  constexpr int V = Lanes<O, A, B, C>::count;
  const F f(p.scalar);
  const u64 first = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * V;
  if (first + V <= p.count) {
    const Values<A, V> a(p.operand[1], first, 0);
    const Values<B, V> b(p.operand[N > 2 ? 2 : 0], first, 0);
    const Values<C, V> c(p.operand[N > 3 ? 3 : 0], first, 0);
    Pack<O, V> out;
#pragma unroll
    for (int i = 0; i < V; i++) out.at[i] = Element<O>::narrow(apply<F, A, B, C, V>(f, a, b, c, i));
    *reinterpret_cast<Pack<O, V>*>(static_cast<O*>(p.operand[0].data) + first) = out;
    return;
  }
#pragma unroll 1
  for (u64 at = first; at < p.count; at++) {
    const Values<A, 1> a(p.operand[1], at, p.operand[1].once ? 0 : at);
    const Values<B, 1> b(p.operand[N > 2 ? 2 : 0], at, p.operand[N > 2 ? 2 : 0].once ? 0 : at);
    const Values<C, 1> c(p.operand[N > 3 ? 3 : 0], at, p.operand[N > 3 ? 3 : 0].once ? 0 : at);
    write<O>(p.operand[0], at, apply<F, A, B, C, 1>(f, a, b, c, 0));
  }
}

// V contiguous elements of each operand, starting at its offset.
template <class A, class B, class C, int V, int N>
struct Arguments {
  Values<A, V> a;
  Values<B, V> b;
  Values<C, V> c;
  METHOD Arguments(const Operand (&from)[N], const i64 (&offset)[N])
      : a(from[1], offset[1], offset[1]),
        b(from[N > 2 ? 2 : 0], offset[N > 2 ? 2 : 0], offset[N > 2 ? 2 : 0]),
        c(from[N > 3 ? 3 : 0], offset[N > 3 ? 3 : 0], offset[N > 3 ? 3 : 0]) {}
};

template <bool PACKS, class F, class O, class A, class B, class C, int N>
DEV void strided(const Strided<N>& p) {
  constexpr int V = Lanes<O, A, B, C>::count;
  const F f(p.scalar);
  const bool packs = PACKS && p.packs;
  const u64 number = (u64)blockIdx.x * blockDim.x + threadIdx.x, at = packs ? number * V : number;
  if (at >= p.count) return;
  i64 offset[N];
  p.dims.offsets((u32)at, offset);
  if constexpr (PACKS) {
    if (packs) {
      const Arguments<A, B, C, V, N> own(p.operand, offset);
      Pack<O, V> out;
#pragma unroll
      for (int i = 0; i < V; i++) out.at[i] = Element<O>::narrow(apply<F, A, B, C, V>(f, own.a, own.b, own.c, i));
      *reinterpret_cast<Pack<O, V>*>(static_cast<O*>(p.operand[0].data) + offset[0]) = out;
      return;
    }
  }
  const Arguments<A, B, C, 1, N> own(p.operand, offset);
  if constexpr (PACKS) {
    // A second element per thread, which hides memory latency.
    const u64 next = at + (u64)gridDim.x * blockDim.x;
    if (next < p.count) {
      i64 further[N];
      p.dims.offsets((u32)next, further);
      const Arguments<A, B, C, 1, N> second(p.operand, further);
      write<O>(p.operand[0], further[0], apply<F, A, B, C, 1>(f, second.a, second.b, second.c, 0));
    }
  }
  write<O>(p.operand[0], offset[0], apply<F, A, B, C, 1>(f, own.a, own.b, own.c, 0));
}

// Both entry points of a function for one dtype.
#define ENTRIES(name, N, F, ...) ENTRIES_AS(false, name, N, F, __VA_ARGS__)
// The entry points of a kernel that supports packs with any strides, as listed in `takes_packs` in map.rs.
#define PACKED_ENTRIES(name, N, F, ...) ENTRIES_AS(true, name, N, F, __VA_ARGS__)
#define ENTRIES_AS(packs, name, N, F, ...)                     \
  KERNEL(name##_dense, Dense<N>) { dense<F, __VA_ARGS__>(p); } \
  KERNEL(name##_strided, Strided<N>) { strided<packs, F, __VA_ARGS__>(p); }

// The type of a function: its parameters and scalars have the type W.
#define FUNCTION(name, count, Result, parameters, ...)                                                     \
  template <class W>                                                                                       \
  struct name##_function {                                                                                 \
    static const int inputs = count;                                                                       \
    W s0, s1, s2;                                                                                          \
    METHOD explicit name##_function(const u64 (&s)[3])                                                     \
        : s0(Immediate<W>::of(s[0])), s1(Immediate<W>::of(s[1])), s2(Immediate<W>::of(s[2])) {}            \
    METHOD Result operator() parameters const { return (Result)(__VA_ARGS__); }                            \
  };

#define UNARY(name, signature, host, dtypes, ...)    \
  FUNCTION(name, 1, W, (W x), __VA_ARGS__)           \
  dtypes(UNARY_ENTRIES, name)
#define UNARY_ENTRIES(dtype, T, name) ENTRIES(name##_##dtype, 2, name##_function<Wide<T>>, T, T, Absent, Absent)

#define PREDICATE(name, signature, host, dtypes, ...) \
  FUNCTION(name, 1, bool, (W x), __VA_ARGS__)         \
  dtypes(PREDICATE_ENTRIES, name)
#define PREDICATE_ENTRIES(dtype, T, name) \
  ENTRIES(name##_##dtype, 2, name##_function<Wide<T>>, bool, T, Absent, Absent)

#define BINARY(name, signature, host, dtypes, ...)   \
  FUNCTION(name, 2, W, (W a, W b), __VA_ARGS__)      \
  dtypes(BINARY_ENTRIES, name)
#define BINARY_ENTRIES(dtype, T, name) \
  ENTRIES_AS(Kind<Wide<T>>::real, name##_##dtype, 3, name##_function<Wide<T>>, T, T, T, Absent)

// As BINARY and TERNARY, for kernels whose strided entry points do not support packs: `takes_packs` in map.rs lists
// families.
#define PLAIN_BINARY(name, signature, host, dtypes, ...) \
  FUNCTION(name, 2, W, (W a, W b), __VA_ARGS__)          \
  dtypes(PLAIN_BINARY_ENTRIES, name)
#define PLAIN_BINARY_ENTRIES(dtype, T, name) ENTRIES(name##_##dtype, 3, name##_function<Wide<T>>, T, T, T, Absent)

#define COMPARISON(name, signature, host, dtypes, ...) \
  FUNCTION(name, 2, bool, (W a, W b), __VA_ARGS__)     \
  dtypes(COMPARISON_ENTRIES, name)
#define COMPARISON_ENTRIES(dtype, T, name) \
  ENTRIES(name##_##dtype, 3, name##_function<Wide<T>>, bool, T, T, Absent)

#define TERNARY(name, signature, host, dtypes, ...)  \
  FUNCTION(name, 3, W, (W a, W b, W c), __VA_ARGS__) \
  dtypes(TERNARY_ENTRIES, name)
#define TERNARY_ENTRIES(dtype, T, name) \
  ENTRIES_AS(Kind<Wide<T>>::real, name##_##dtype, 4, name##_function<Wide<T>>, T, T, T, T)

#define PLAIN_TERNARY(name, signature, host, dtypes, ...) \
  FUNCTION(name, 3, W, (W a, W b, W c), __VA_ARGS__)      \
  dtypes(PLAIN_TERNARY_ENTRIES, name)
#define PLAIN_TERNARY_ENTRIES(dtype, T, name) ENTRIES(name##_##dtype, 4, name##_function<Wide<T>>, T, T, T, T)
