// Shared parts of the attention kernels: operands of any strides, grouped-query attention, masks.
#pragma once
#include "nets.cuh"

struct Matrix {
  void* data;
  i64 row, column;
  // The stride between query heads that share a key head.
  i64 step;
};

// The kind of mask.
enum MaskKind : u32 { NO_MASK, ALLOWED, ADDED_F16, ADDED_BF16, ADDED_F32, ADDED_F64 };

constexpr u32 OPERANDS = 10;

struct Attention {
  Matrix query, key, value, mask, out, logsumexp, grad;
  Matrix of_query, of_key, of_value;
  // One `QueryStatistics` per query.
  void* statistics;
  // The offset of each operand's matrix, by key head.
  Dims<OPERANDS> lead;
  u64 scale;
  u32 queries, keys, width, values;
  // The number of query heads per key head, and the first key head of this launch.
  u32 repeats, first_head;
  u32 causal, mask_kind;
  // Whether the logsumexp input has the operands' dtype.
  u32 narrow_sums;
  // A bit mask of query, key, value, gradient and result: whether every 8 elements of a row are contiguous and aligned to
  // 16 bytes. Read by the tensor core kernels alone.
  u32 pieces;
};

constexpr u32 ATTENTION_THREADS = 128;

// The per-query inputs of a gradient: the dot product of the result's gradient and the result; and the shift and factor for
// which weight = factor * exp(score - shift).
template <class W>
struct QueryStatistics {
  W delta, from, factor;
};

// Indexed by query head.
template <class W>
DEV QueryStatistics<W>& statistics_of(const Attention& p, u32 head, u32 query) {
  return static_cast<QueryStatistics<W>*>(p.statistics)[(u64)head * p.queries + query];
}

// A score, and an element of a mask.
template <class W>
CALLED W with_mask(W score, const void* mask, i64 place, u32 kind) {
  switch (kind) {
    case ALLOWED: return static_cast<const bool*>(mask)[place] ? score : -Infinite<W>::value();
    case ADDED_F16: return score + (W)Element<f16>::widen(static_cast<const f16*>(mask)[place]);
    case ADDED_BF16: return score + (W)Element<bf16>::widen(static_cast<const bf16*>(mask)[place]);
    case ADDED_F32: return score + (W) static_cast<const float*>(mask)[place];
    default: return score + (W) static_cast<const double*>(mask)[place];
  }
}

// The operands' matrices of one query head.
template <class T>
struct Heads {
  typedef Wide<T> W;
  const Attention& p;
  i64 at[OPERANDS];
  u32 repeat;
  METHOD Heads(const Attention& p, u32 head, u32 repeat) : p(p), repeat(repeat) { p.lead.offsets(p.first_head + head, at); }
  METHOD T* begin(const Matrix& m, u32 operand) const { return static_cast<T*>(m.data) + at[operand] + repeat * m.step; }
  METHOD const T* query() const { return begin(p.query, 0); }
  METHOD const T* key() const { return begin(p.key, 1); }
  METHOD const T* value() const { return begin(p.value, 2); }
  METHOD T* out() const { return begin(p.out, 4); }
  METHOD const T* grad() const { return begin(p.grad, 6); }
  METHOD T* of_query() const { return begin(p.of_query, 7); }
  METHOD T* of_key() const { return begin(p.of_key, 8); }
  METHOD T* of_value() const { return begin(p.of_value, 9); }
  // The offset of a query's logsumexp, and reads of its statistics.
  METHOD i64 logsumexp_at(u32 query) const { return at[5] + repeat * p.logsumexp.step + query * p.logsumexp.row; }
  METHOD W& logsumexp_out(u32 query) const { return static_cast<W*>(p.logsumexp.data)[logsumexp_at(query)]; }
  METHOD W logsumexp(u32 query) const {
    if (p.narrow_sums) return Element<T>::widen(static_cast<const T*>(p.logsumexp.data)[logsumexp_at(query)]);
    return logsumexp_out(query);
  }
  // A score with the mask applied.
  METHOD W masked(W score, u32 query, u32 key) const {
    if (p.causal && key > query) return -Infinite<W>::value();
    if (p.mask_kind == NO_MASK) return score;
    const i64 place = at[3] + repeat * p.mask.step + query * p.mask.row + key * p.mask.column;
    return with_mask(score, p.mask.data, place, p.mask_kind);
  }
};

// The number of keys to which the queries below `end` attend.
DEV u32 keys_seen(const Attention& p, u32 end) { return p.causal && end < p.keys ? end : p.keys; }

// The factor of a query's result, and its logsumexp. A fully masked query, and an empty key, have a result of zeros.
template <class W>
struct Ending {
  W factor, logsumexp;
  METHOD Ending(const Attention& p, W largest, W sum) {
    const bool nothing = p.keys == 0 || (p.mask_kind != NO_MASK && largest == -Infinite<W>::value());
    factor = nothing ? W(0) : W(1) / sum;
    const bool endless = largest == Infinite<W>::value();
    logsumexp = nothing ? W(0) : endless ? largest : largest + log_(sum);
  }
};
