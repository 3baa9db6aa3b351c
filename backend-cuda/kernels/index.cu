// Gathers of elements at indices, and checks of indices before elements are accessed at them.
#include "elementwise.cuh"

// Finds the first index outside `low .. low + range` that is not `none`: `found` is initialised to a larger number.
struct Check {
  Operand index;
  u64* found;
  i64 low;
  u64 range;
  i64 none;
  u64 has_none;
  u64 first;
  u64 count;
  Dims<1> dims;
};
KERNEL(check_i64, Check) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[1];
  p.dims.offsets((u32)at, offset);
  const i64 index = read<i64>(p.index, offset[0]);
  if ((u64)index - (u64)p.low < p.range || (p.has_none && index == p.none)) return;
  atomicMin(p.found, p.first + at);
}

// Copies indices contiguously without synchronisation with the host: an index out of range is reported, and replaced by
// `instead`. Indices after the number at `end`, if not null, are not reported.
struct Clamp {
  i64* out;
  Operand index;
  Report* report;
  const i64* end;
  i64 low;
  u64 range;
  i64 instead;
  u64 may_be_instead;
  u64 first;
  u64 count;
  Dims<1> dims;
};
KERNEL(clamp_i64, Clamp) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[1];
  p.dims.offsets((u32)at, offset);
  i64 index = read<i64>(p.index, offset[0]);
  if ((u64)index - (u64)p.low >= p.range && !(p.may_be_instead && index == p.instead)) {
    if (p.end == nullptr || (i64)(p.first + at) < *p.end) report(p.report, index);
    index = p.instead;
  }
  p.out[p.first + at] = index;
}

// One dimension's contribution to the offsets of several index tensors; a negative index counts from the end.
struct Offset {
  i64* out;
  Operand index;
  i64 size;
  i64 stride;
  u64 added;
  u64 count;
  Dims<2> dims;
};
KERNEL(offset_i64, Offset) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[2];
  p.dims.offsets((u32)at, offset);
  i64 index = read<i64>(p.index, offset[1]);
  if (index < 0) index += p.size;
  i64* out = p.out + offset[0];
  *out = (p.added ? *out : 0) + index * p.stride;
}

// Each output is the source's element at its index; the dimensions are those of the output, with the strides of output,
// index and source. A thread has one element, or two that are a grid apart, which hides memory latency.
struct Take {
  void* out;
  Operand index;
  Operand source;
  i64 stride;
  u64 count;
  Dims<3> dims;
};
template <>
struct Immediate<Pack<u64, 2>> {
  DEV Pack<u64, 2> of(u64 bits) { return Pack<u64, 2>{{bits, bits}}; }
};
template <class T>
DEV void take(const Take& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x, next = at + (u64)gridDim.x * blockDim.x;
  if (at >= p.count) return;
  i64 offset[3], further[3] = {0, 0, 0}, second = 0;
  p.dims.offsets((u32)at, offset);
  const i64 first = read<i64>(p.index, offset[1]);
  if (next < p.count) {
    p.dims.offsets((u32)next, further);
    second = read<i64>(p.index, further[1]);
  }
  T* out = static_cast<T*>(p.out);
  const T own = read<T>(p.source, offset[2] + first * p.stride);
  if (next < p.count) out[further[0]] = read<T>(p.source, further[2] + second * p.stride);
  out[offset[0]] = own;
}
#define TAKE(bits, T, name) KERNEL(name##_##bits, Take) { take<T>(p); }
BITS(TAKE, take)
// Gathers whole rows, whose elements share an index.
typedef Pack<u64, 2> u128;
TAKE(b128, u128, take)
REGISTER(index_select, "TiT>T", index_select, ALL)
REGISTER(embedding, "TTi>T", embedding, ALL)
REGISTER(embedding_sparse, "TTi>T", embedding, NUMBERS)
REGISTER(gather, "TiT>T", gather, ALL)
REGISTER(index, "TLI>T", index, ALL)
