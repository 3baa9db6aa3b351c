// Ops with data-dependent output sizes. Selected elements are counted per part, the counts are scanned (exclusive prefix
// sum), and the elements are then written at the resulting offsets.
#include "elementwise.cuh"

// The number of elements of a part, as in choose.rs.
constexpr u64 PART = 32;

// The selection predicate: an element with a bit of `mask` set, or a sorted key that differs from the previous one; a key
// of `nan` equals no other.
struct Choose {
  Operand in;
  u64 mask;
  u64 nan;
  u64 has_nan;
  u64* counts;
  u64* chosen;
  u64 count;
  Dims<1> dims;
};
template <class T>
struct Marked {
  METHOD static bool at(const Choose& p, u64 i) {
    i64 offset[1];
    p.dims.offsets((u32)i, offset);
    return (read<T>(p.in, offset[0]) & p.mask) != 0;
  }
};
struct Fresh {
  METHOD static bool at(const Choose& p, u64 i) {
    const u64* keys = static_cast<const u64*>(p.in.data);
    return i == 0 || keys[i] != keys[i - 1] || (p.has_nan && keys[i] == p.nan);
  }
};
template <class Which, bool WRITE>
DEV void choose(const Choose& p) {
  const u64 part = (u64)blockIdx.x * blockDim.x + threadIdx.x, begin = part * PART;
  if (begin >= p.count) return;
  const u64 end = p.count - begin < PART ? p.count : begin + PART;
  u64 number = WRITE ? p.counts[part] : 0;
  for (u64 i = begin; i < end; i++) {
    if (!Which::at(p, i)) continue;
    if (WRITE) p.chosen[number] = i;
    number++;
  }
  if (!WRITE) p.counts[part] = number;
}
#define MARKED(bits, T, name)                                            \
  KERNEL(count_##bits, Choose) { choose<Marked<T>, false>(p); }          \
  KERNEL(chosen_##bits, Choose) { choose<Marked<T>, true>(p); }
BITS(MARKED, )
KERNEL(count_fresh, Choose) { choose<Fresh, false>(p); }
KERNEL(chosen_fresh, Choose) { choose<Fresh, true>(p); }

// Writes one coordinate of each selected element.
struct Coordinate {
  i64* out;
  const u64* chosen;
  u64 step;
  u64 inner;
  u64 size;
  u64 count;
};
KERNEL(coordinate_i64, Coordinate) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at < p.count) p.out[at * p.step] = (i64)(p.chosen[at] / p.inner % p.size);
}
REGISTER_ALLOCATING(nonzero, "T>T", nonzero, ALL)

// Writes the selected elements; through `order` if the selected numbers are ranks.
struct Selected {
  void* out;
  Operand in;
  const u64* chosen;
  const u32* order;
  u64 count;
  Dims<1> dims;
};
template <class T>
DEV void selected(const Selected& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 chosen = p.chosen[at];
  i64 offset[1];
  p.dims.offsets(p.order == nullptr ? (u32)chosen : p.order[chosen], offset);
  static_cast<T*>(p.out)[at] = read<T>(p.in, offset[0]);
}
#define SELECTED(bits, T, name) KERNEL(name##_##bits, Selected) { selected<T>(p); }
BITS(SELECTED, selected)
REGISTER_ALLOCATING(masked_select, "TT>T", masked_select, ALL)

// `masked_scatter`: a warp processes the elements of a part, with the number of selected elements before it in `counts`,
// and reads the next elements of the source. The dimensions are those of the output, with the strides of output, input and
// mask; `sources` maps a number to the source's offset.
struct Spread {
  void* out;
  Operand in;
  Operand mask;
  Operand source;
  const u64* counts;
  u64 count;
  Dims<3> dims;
  Dims<1> sources;
};
template <class T>
DEV void spread(const Spread& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  i64 offset[3] = {0, 0, 0};
  if (at < p.count) p.dims.offsets((u32)at, offset);
  const bool is_marked = at < p.count && read<u8>(p.mask, offset[2]) != 0;
  const u32 marks = __ballot_sync(~0u, is_marked);
  if (at >= p.count) return;
  T* out = static_cast<T*>(p.out) + offset[0];
  if (!is_marked) {
    *out = read<T>(p.in, offset[1]);
    return;
  }
  i64 from[1];
  p.sources.offsets((u32)p.counts[at / PART] + __popc(marks & ((1u << at % PART) - 1)), from);
  *out = read<T>(p.source, from[0]);
}
#define SPREAD(bits, T, name) KERNEL(name##_##bits, Spread) { spread<T>(p); }
BITS(SPREAD, masked_scatter)
REGISTER(masked_scatter, "TTT>T", masked_scatter, ALL)

// Groups of equal elements: `chosen` has the rank of the first element of each group.
struct Groups {
  i64* out;
  const u64* chosen;
  const u32* order;
  u64 groups;
  u64 count;
};
KERNEL(lengths_i64, Groups) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.groups) return;
  p.out[at] = (i64)((at + 1 < p.groups ? p.chosen[at + 1] : p.count) - p.chosen[at]);
}
KERNEL(inverse_i64, Groups) {
  const u64 rank = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (rank >= p.count) return;
  // Binary search for the last group that starts at or before this rank.
  u64 from = 0;
  for (u64 end = p.groups; end - from > 1;) {
    const u64 middle = from + (end - from) / 2;
    if (p.chosen[middle] <= rank) from = middle;
    else end = middle;
  }
  p.out[p.order[rank]] = (i64)from;
}
REGISTER_ALLOCATING(unique, "Tbb>TTT", unique, ALL)
