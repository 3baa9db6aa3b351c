// Coordinates of sparse entries; a linear coordinate is the sum of the indices times strides. Duplicates are added in the
// order of a stable sort, without atomic sums, so that a result is bit-identical on every run.
#include "elementwise.cuh"

// One dimension's contribution to the linear coordinates of all entries: `found` becomes the number of the first entry with
// an index outside `size`, and is initialised to a larger number.
struct Places {
  const i64* index;
  i64 step;
  u64* places;
  u32* order;
  u64* found;
  u64 size;
  u64 stride;
  u64 added;
  u64 count;
};
KERNEL(places_i64, Places) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 index = (u64)p.index[(i64)at * p.step];
  if (index >= p.size) atomicMin(p.found, at);
  p.places[at] = (p.added ? p.places[at] : 0) + index * p.stride;
  p.order[at] = (u32)at;
}
// The number of the first entry that is not greater than the previous one.
KERNEL(falls_i64, Places) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at > 0 && at < p.count && p.places[at] <= p.places[at - 1]) atomicMin(p.found, at);
}

// Selected entries: their indices, one row per dimension; through `order` if ranks were selected.
struct Picked {
  i64* out;
  const i64* index;
  i64 strides[2];
  const u64* chosen;
  const u32* order;
  u64 chosen_count;
  u64 first;
  u64 count;
};
KERNEL(picked_i64, Picked) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 row = (p.first + at) / p.chosen_count, chosen = p.chosen[(p.first + at) % p.chosen_count];
  const u64 entry = p.order == nullptr ? chosen : p.order[chosen];
  p.out[p.first + at] = p.index[(i64)row * p.strides[0] + (i64)entry * p.strides[1]];
}

// Segmented sums: the values of each group of entries, added in order.
struct Sums {
  void* out;
  const void* values;
  const u32* order;
  const u64* begins;
  u64 groups;
  u64 entries;
  u64 width;
  u64 first;
  u64 count;
};
template <class T>
DEV void sums(const Sums& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 group = (p.first + at) / p.width, within = (p.first + at) % p.width;
  const T* values = static_cast<const T*>(p.values) + within;
  const u64 begin = p.begins[group], end = group + 1 < p.groups ? p.begins[group + 1] : p.entries;
  Long<Wide<T>> sum = Element<T>::widen(values[p.order[begin] * p.width]);
  for (u64 rank = begin + 1; rank < end; rank++) {
    sum = plus(sum, (Long<Wide<T>>)Element<T>::widen(values[p.order[rank] * p.width]));
  }
  static_cast<T*>(p.out)[p.first + at] = Element<T>::narrow((Wide<T>)sum);
}
#define SUMS(dtype, T, name) KERNEL(name##_##dtype, Sums) { sums<T>(p); }
NUMBERS(SUMS, sums)

// Blocks at distinct coordinates: written, or added to the output.
struct Blocks {
  void* out;
  const void* values;
  const u64* places;
  u64 width;
  u64 first;
  u64 count;
};
template <class T, bool ADD>
DEV void blocks(const Blocks& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 entry = (p.first + at) / p.width, within = (p.first + at) % p.width;
  const T value = static_cast<const T*>(p.values)[p.first + at];
  T* out = static_cast<T*>(p.out) + p.places[entry] * p.width + within;
  if constexpr (ADD) *out = Element<T>::narrow(plus(Element<T>::widen(*out), Element<T>::widen(value)));
  else *out = value;
}
#define WRITTEN(bits, T, name) KERNEL(name##_##bits, Blocks) { blocks<T, false>(p); }
#define ADDED(dtype, T, name) KERNEL(name##_##dtype, Blocks) { blocks<T, true>(p); }
BITS(WRITTEN, written)
NUMBERS(ADDED, added)

// Whether any element of each block has a bit of a mask set.
struct Stored {
  u8* out;
  const void* values;
  u64 mask;
  u64 width;
  u64 first;
  u64 count;
};
template <class T>
DEV void stored(const Stored& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const T* values = static_cast<const T*>(p.values) + (p.first + at) * p.width;
  bool any = false;
  for (u64 i = 0; i < p.width && !any; i++) any = ((u64)values[i] & p.mask) != 0;
  p.out[p.first + at] = any;
}
#define STORED(bits, T, name) KERNEL(name##_##bits, Stored) { stored<T>(p); }
BITS(STORED, stored)

// Binary searches in ascending coordinates: the number of coordinates below each number from 0, or below the numbers in
// `wanted`. If `exact` is set, one more than that if the coordinate exists, otherwise 0.
struct Before {
  u64* out;
  const u64* places;
  const u64* wanted;
  u64 places_count;
  u64 exact;
  u64 count;
};
KERNEL(before_u64, Before) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 place = p.wanted == nullptr ? at : p.wanted[at];
  u64 from = 0;
  for (u64 end = p.places_count; from < end;) {
    const u64 middle = from + (end - from) / 2;
    if (p.places[middle] < place) from = middle + 1;
    else end = middle;
  }
  if (!p.exact) p.out[at] = from;
  else p.out[at] = from < p.places_count && p.places[from] == place ? from + 1 : 0;
}

// Gathers blocks by one-based numbers; zeros for number 0.
struct Found {
  void* out;
  const void* values;
  const u64* numbers;
  u64 width;
  u64 first;
  u64 count;
};
template <class T>
DEV void found(const Found& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 number = p.numbers[(p.first + at) / p.width], within = (p.first + at) % p.width;
  const T* values = static_cast<const T*>(p.values);
  static_cast<T*>(p.out)[p.first + at] = number == 0 ? T(0) : values[(number - 1) * p.width + within];
}
#define FOUND(bits, T, name) KERNEL(name##_##bits, Found) { found<T>(p); }
BITS(FOUND, found)

// Product of rows of entries and a strided matrix, or a batch of matrices: a thread for each element of the result iterates
// over the entries of its row.
struct ByDense {
  void* out;
  const void* values;
  const u64* begins;
  const i64* columns;
  Operand dense;
  // The strides of batch, rows and columns.
  i64 dense_strides[3];
  i64 out_strides[3];
  u64 rows;
  u64 width;
  u64 first;
  u64 count;
};
template <class T>
DEV void by_dense(const ByDense& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 line = (p.first + at) / p.width, stack = line / p.rows;
  const i64 column = (i64)((p.first + at) % p.width);
  const i64 base = (i64)stack * p.dense_strides[0] + column * p.dense_strides[2];
  Wide<T> sum = Wide<T>(0);
  for (u64 entry = p.begins[line]; entry < p.begins[line + 1]; entry++) {
    const Wide<T> value = Element<T>::widen(static_cast<const T*>(p.values)[entry]);
    sum = plus(sum, times(value, read<T>(p.dense, base + p.columns[entry] * p.dense_strides[1])));
  }
  const i64 to = (i64)stack * p.out_strides[0] + (i64)(line % p.rows) * p.out_strides[1] + column * p.out_strides[2];
  static_cast<T*>(p.out)[to] = Element<T>::narrow(sum);
}
#define BY_DENSE(dtype, T, name) KERNEL(name##_##dtype, ByDense) { by_dense<T>(p); }
NUMBERS(BY_DENSE, by_dense)

// Sampled dense-dense product (SDDMM): the product of two strided matrices at the coordinates of entries.
struct Sampled {
  void* out;
  const i64* index;
  i64 row_step;
  Operand left;
  Operand right;
  i64 left_strides[2];
  i64 right_strides[2];
  u64 inner;
  u64 count;
};
template <class T>
DEV void sampled(const Sampled& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const i64 left = p.index[at] * p.left_strides[0], right = p.index[(i64)at + p.row_step] * p.right_strides[1];
  Wide<T> sum = Wide<T>(0);
  for (u64 i = 0; i < p.inner; i++) {
    const Wide<T> a = read<T>(p.left, left + (i64)i * p.left_strides[1]);
    sum = plus(sum, times(a, read<T>(p.right, right + (i64)i * p.right_strides[0])));
  }
  static_cast<T*>(p.out)[at] = Element<T>::narrow(sum);
}
#define SAMPLED(dtype, T, name) KERNEL(name##_##dtype, Sampled) { sampled<T>(p); }
NUMBERS(SAMPLED, sampled)

// Sparse-sparse product (Gustavson): the number of products of each entry of the left operand, then the products.
struct Pairs {
  i64* out;
  u64* left_numbers;
  u64* right_numbers;
  // The left operand: the number of products before each entry; the row and the column of each entry.
  u64* before;
  const i64* left_index;
  const i64* right_index;
  u64 left_count;
  u64 right_count;
  const u64* begins;
  u64 count;
};
KERNEL(pair_counts_u64, Pairs) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const i64 row = p.left_index[p.left_count + at];
  p.before[at] = p.begins[row + 1] - p.begins[row];
}
KERNEL(pairs_i64, Pairs) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  // Binary search for the last entry whose products start at or before this one.
  u64 left = 0;
  for (u64 end = p.left_count; end - left > 1;) {
    const u64 middle = left + (end - left) / 2;
    if (p.before[middle] <= at) left = middle;
    else end = middle;
  }
  const u64 right = p.begins[p.left_index[p.left_count + left]] + (at - p.before[left]);
  p.out[at] = p.left_index[left];
  p.out[p.count + at] = p.right_index[p.right_count + right];
  p.left_numbers[at] = left;
  p.right_numbers[at] = right;
}

REGISTER_ALLOCATING(to_sparse, "Ti>T", to_sparse, NUMBERS)

REGISTER_COO(coalesce, "T>T", coalesce, NUMBERS)
REGISTER_COO(sparse_mask, "TT>T", sparse_mask, NUMBERS)
REGISTER_COO(sampled_mm, "TTT>T", sampled_mm, NUMBERS)
REGISTER_COO(mm, "TT>T", mm, NUMBERS)
REGISTER_COO(mv, "TT>T", mm, NUMBERS)
REGISTER_COO(bmm, "TT>T", mm, NUMBERS)
REGISTER_COO(addmm, "TTTss>T", addmm, NUMBERS)
REGISTER_COO(add, "TTs>T", add, NUMBERS)
REGISTER_COO(sub, "TTs>T", sub, NUMBERS)
REGISTER_COO(mul, "TT>T", mul, NUMBERS)
REGISTER_COO(div, "TTS>T", div, NUMBERS)
REGISTER_COO(pow, "TT>T", pow, NUMBERS)
REGISTER_COO(sum, "TIb>T", sum, NUMBERS)
REGISTER_COO(mean, "TIb>T", mean, FLOATS)
REGISTER_COO(permute, "TI>T", permute, NUMBERS)
REGISTER_COO(transpose, "Tii>T", transpose, NUMBERS)
REGISTER_COO(clone, "TS>T", clone, NUMBERS)
REGISTER_COO(to_dtype, "Td>T", to_dtype, NUMBERS)
REGISTER_COO(fill, "Ts>T", fill, NUMBERS)
REGISTER_COO(neg, "T>T", neg, NUMBERS)
REGISTER_COO(abs, "T>T", each, NUMBERS)
REGISTER_COO(sign, "T>T", each, NUMBERS)
REGISTER_COO(relu, "T>T", each, NUMBERS)
REGISTER_COO(square, "T>T", each, NUMBERS)
REGISTER_COO(floor, "T>T", each, NUMBERS)
REGISTER_COO(ceil, "T>T", each, NUMBERS)
REGISTER_COO(round, "T>T", each, NUMBERS)
REGISTER_COO(trunc, "T>T", each, NUMBERS)
REGISTER_COO(sqrt, "T>T", each, FLOATS)
REGISTER_COO(sin, "T>T", each, FLOATS)
REGISTER_COO(tan, "T>T", each, FLOATS)
REGISTER_COO(asin, "T>T", each, FLOATS)
REGISTER_COO(atan, "T>T", each, FLOATS)
REGISTER_COO(sinh, "T>T", each, FLOATS)
REGISTER_COO(tanh, "T>T", each, FLOATS)
REGISTER_COO(asinh, "T>T", each, FLOATS)
REGISTER_COO(atanh, "T>T", each, FLOATS)
REGISTER_COO(erf, "T>T", each, FLOATS)
REGISTER_COO(expm1, "T>T", each, FLOATS)
REGISTER_COO(log1p, "T>T", each, FLOATS)
REGISTER_COO(silu, "T>T", each, FLOATS)
REGISTER_COO(hardswish, "T>T", each, FLOATS)
REGISTER_COO(selu, "T>T", each, FLOATS)
REGISTER_COO(mish, "T>T", each, FLOATS)
REGISTER_COO(leaky_relu, "Ts>T", each_by, FLOATS)
REGISTER_COO(gelu, "TS>T", each_by, FLOATS)
REGISTER_COO(elu, "Ts>T", each_by, FLOATS)
REGISTER_COO(celu, "Ts>T", each_by, FLOATS)
REGISTER_COO(softshrink, "Ts>T", each_by, FLOATS)
