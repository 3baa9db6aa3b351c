// Reductions of rows of a matrix, gathered by index.
#include "elementwise.cuh"

enum Mode { SUM, MEAN, MAX };

// The offsets of bags, each at most `most`; reports offsets that do not ascend from 0.
struct Offsets {
  const i64* given;
  i64* out;
  Report* report;
  i64 most;
  u64 count;
};
KERNEL(offsets_i64, Offsets) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const i64 own = p.given[at], before = at ? p.given[at - 1] : own;
  if (own < before || own < 0 || own > p.most || (at == 0 && own != 0)) report(p.report, own);
  p.out[at] = own < 0 ? 0 : own > p.most ? p.most : own;
}

// The dimensions are those of indices and factors in row-major order, with the strides of both. `length` is the length of
// each bag if there are no offsets.
struct Bags {
  void* out;
  Operand weight;
  i64 weight_strides[2];
  Operand indices;
  Operand factors;
  const i64* offsets;
  u64 offsets_count;
  u64 indices_count;
  u64 length;
  u64 mode;
  u64 has_factors;
  u64 has_padding;
  i64 padding;
  u64 columns;
  u64 first;
  u64 count;
  i64 out_strides[2];
  Dims<2> dims;
};

template <class T>
DEV void bag(const Bags& p) {
  typedef Long<Wide<T>> Acc;
  const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= p.count) return;
  const u64 at = p.first + thread, which = at / p.columns;
  const i64 column = (i64)(at % p.columns);
  u64 begin = which * p.length, end = begin + p.length;
  if (p.offsets != nullptr) {
    begin = (u64)p.offsets[which];
    end = which + 1 < p.offsets_count ? (u64)p.offsets[which + 1] : p.indices_count;
  }
  Acc made = Acc(0);
  i64 rows = 0;
  for (u64 i = begin; i < end; i++) {
    i64 offset[2];
    p.dims.offsets((u32)i, offset);
    const i64 row = read<i64>(p.indices, offset[0]);
    if (p.has_padding && row == p.padding) continue;
    const Acc x = read<T>(p.weight, row * p.weight_strides[0] + column * p.weight_strides[1]);
    if (p.mode == MAX) made = rows == 0 || x > made || x != x ? x : made;
    else made = made + (p.has_factors ? x * read<T>(p.factors, offset[1]) : x);
    rows++;
  }
  if (p.mode == MEAN && rows != 0) made = made / (Acc)rows;
  static_cast<T*>(p.out)[(i64)which * p.out_strides[0] + column * p.out_strides[1]] = Element<T>::narrow((Wide<T>)made);
}
#define BAG(dtype, T, name) KERNEL(name##_##dtype, Bags) { bag<T>(p); }
FLOATS(BAG, embedding_bag)
REGISTER(embedding_bag, "TTOSObi>T", embedding_bag, FLOATS)
