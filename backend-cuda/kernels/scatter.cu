// Elements written or added at indices. For duplicate indices the order of the sources determines the result, whatever the
// order of threads: a write stores the last source of each output, found as the maximum of source numbers, and a sum adds
// the sources of an output in the order of a stable sort by output. There are no atomic sums.
#include "elementwise.cuh"

// The output offset of each index: the dimensions are those of the indices, with the strides of index and output.
struct Place {
  Operand index;
  u64* places;
  u32* order;
  u64 base;
  i64 stride;
  u64 first;
  u64 count;
  Dims<2> dims;
};
DEV u64 place_of(const Place& p, u64 at) {
  i64 offset[2];
  p.dims.offsets((u32)at, offset);
  const i64 index = read<i64>(p.index, offset[0]);
  return p.base + (u64)(offset[1] + index * p.stride);
}
// The one-based number of the last source of each output element; `0`, the initial value, if there is none.
KERNEL(last_u64, Place) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at < p.count) atomicMax(p.places + place_of(p, at), p.first + at + 1);
}
// The output offsets as sort keys.
KERNEL(places_u64, Place) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  p.places[p.first + at] = place_of(p, at);
  p.order[p.first + at] = (u32)(p.first + at);
}

// The dimensions are those of the output, with the strides of output, target, output number and, if an index selects a
// whole slice, of the source within it; `sources` maps a number to the source's offset.
struct Put {
  void* out;
  Operand target;
  Operand source;
  const u64* places;
  const u32* order;
  u64 base;
  u64 sources_count;
  u64 alpha;
  // The reduction, and whether it includes the target.
  u32 reduction;
  u32 include;
  u64 count;
  Dims<4> dims;
  Dims<1> sources;
};
template <class T>
DEV void put(const Put& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[4];
  p.dims.offsets((u32)at, offset);
  const u64 last = p.places[p.base + (u64)offset[2]];
  T* out = static_cast<T*>(p.out) + offset[0];
  if (last == 0) {
    *out = read<T>(p.target, offset[1]);
    return;
  }
  i64 source[1];
  p.sources.offsets((u32)(last - 1), source);
  *out = read<T>(p.source, offset[3] + source[0]);
}
#define PUT(bits, T, name) KERNEL(name##_##bits, Put) { put<T>(p); }
BITS(PUT, put)
REGISTER(scatter, "TiTT>T", scatter, ALL)
REGISTER(index_copy, "TiTT>T", index_copy, ALL)

// The type of `alpha`, and the accumulation type. A sum of bools is true if it is not 0.
template <class T>
struct Sum {
  typedef Wide<T> Given;
  typedef Long<Given> Acc;
  static constexpr bool is_truth = false;
};
template <>
struct Sum<bool> {
  typedef float Given;
  typedef float Acc;
  static constexpr bool is_truth = true;
};

// The first source of an output element, among all sources sorted by output.
DEV u64 first_of(const Put& p, u64 place) {
  u64 from = 0;
  for (u64 end = p.sources_count; from < end;) {
    const u64 middle = from + (end - from) / 2;
    if (p.places[middle] < place) from = middle + 1;
    else end = middle;
  }
  return from;
}

template <class T>
DEV void add(const Put& p) {
  typedef typename Sum<T>::Acc Acc;
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[4];
  p.dims.offsets((u32)at, offset);
  const u64 place = p.base + (u64)offset[2];
  u64 from = first_of(p, place);
  Acc sum = (Acc)read<T>(p.target, offset[1]);
  const Acc alpha = (Acc)Immediate<typename Sum<T>::Given>::of(p.alpha);
  for (; from < p.sources_count && p.places[from] == place; from++) {
    i64 source[1];
    p.sources.offsets(p.order[from], source);
    sum = plus(sum, times(alpha, (Acc)read<T>(p.source, offset[3] + source[0])));
  }
  if constexpr (Sum<T>::is_truth) static_cast<T*>(p.out)[offset[0]] = sum != Acc(0);
  else static_cast<T*>(p.out)[offset[0]] = Element<T>::narrow((Wide<T>)sum);
}
#define ADD(dtype, T, name) KERNEL(name##_##dtype, Put) { add<T>(p); }
ALL(ADD, put_sum)
REGISTER(scatter_add, "TiTT>T", scatter_add, ALL)
REGISTER(index_add, "TiTTs>T", index_add, ALL)
REGISTER(index_put, "TLITb>T", index_put, ALL)

// Reductions of sources. Means of integers are computed from 64-bit sums, rounded down.
enum Reduction : u32 { SUM, PRODUCT, MEAN, LARGEST, SMALLEST };
template <class W>
struct Joined {
  typedef i64 Acc;
};
template <>
struct Joined<float> {
  typedef Long<float> Acc;
};
template <>
struct Joined<double> {
  typedef double Acc;
};
template <>
struct Joined<u64> {
  typedef u64 Acc;
};
template <class A>
DEV A joined(u32 reduction, A a, A b) {
  switch (reduction) {
    case PRODUCT: return times(a, b);
    case LARGEST: return larger(a, b);
    case SMALLEST: return smaller(a, b);
    default: return plus(a, b);
  }
}

template <class T>
DEV void reduce(const Put& p) {
  typedef typename Joined<Wide<T>>::Acc Acc;
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[4];
  p.dims.offsets((u32)at, offset);
  const u64 place = p.base + (u64)offset[2];
  u64 from = first_of(p, place), members = p.include;
  Acc made = (Acc)read<T>(p.target, offset[1]);
#pragma unroll 1
  for (; from < p.sources_count && p.places[from] == place; from++, members++) {
    i64 source[1];
    p.sources.offsets(p.order[from], source);
    const Acc next = (Acc)read<T>(p.source, offset[3] + source[0]);
    made = members == 0 ? next : joined(p.reduction, made, next);
  }
  if (p.reduction == MEAN && members > 1) {
    if constexpr (Kind<Acc>::real) made /= (Acc)members;
    else made = floor_quotient(made, (Acc)members);
  }
  static_cast<T*>(p.out)[offset[0]] = Element<T>::narrow((Wide<T>)made);
}
#define REDUCE(dtype, T, name) KERNEL(name##_##dtype, Put) { reduce<T>(p); }
NUMBERS(REDUCE, put_reduced)
REGISTER(scatter_reduce, "TiTTSb>T", scatter_reduce, NUMBERS)
REGISTER(index_reduce, "TiTTSb>T", index_reduce, NUMBERS)
