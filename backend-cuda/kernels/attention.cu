// Attention that keeps no scores: queries go over the keys by tiles, with the largest score and the sum so far (M. Milakov and
// N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao and others, "FlashAttention", 2022). Gradients
// compute the scores again. One of the query is summed over keys and one of the key over queries, each in one block, so that
// results have the same bits on every run.
#include "attention.cuh"

// A block has `ROWS` rows of one side at a time. As many threads have a row together, side by side in a warp; each of them
// has some of the other side's rows, and some columns of what is made.
template <class W, u32 WIDTH, u32 BYTES>
struct Tile {
  static constexpr u32 ROWS = BYTES / (WIDTH * sizeof(W)), LANES = ATTENTION_THREADS / ROWS, EACH = WIDTH / LANES;
  static constexpr u32 SCORES = ROWS < LANES ? 1 : ROWS / LANES;
  // One more, so that the rows begin in different banks.
  static constexpr u32 PITCH = WIDTH + 1, SIDE = ROWS + 1;
  static constexpr u32 ELEMENTS = ROWS * PITCH;

  // Rows from `first` on, times a factor; zeros below the last. A warp reads a row.
  template <class T>
  METHOD static void load(W* to, const T* from, const Matrix& m, u32 first, u32 rows, u32 columns, W factor) {
    for (u32 row = threadIdx.x / 32; row < ROWS; row += ATTENTION_THREADS / 32) {
      const bool inside = first + row < rows;
      const T* own = from + (first + row) * m.row;
      for (u32 column = threadIdx.x % 32; column < columns; column += 32) {
        to[row * PITCH + column] = inside ? Element<T>::widen(own[column * m.column]) * factor : W(0);
      }
    }
  }

  METHOD static W dot(const W* a, const W* b, u32 count) {
    W sum = W(0);
#pragma unroll 4
    for (u32 k = 0; k < count; k++) sum = fused(a[k], b[k], sum);
    return sum;
  }

  // Adds rows of `from`, `count` of them, each times a number, to the thread's columns.
  METHOD static void add(W (&to)[EACH], const W* factors, const W* from, u32 count, u32 columns) {
    const u32 lane = threadIdx.x % LANES;
#pragma unroll 1
    for (u32 j = 0; j < count; j++) {
#pragma unroll
      for (u32 i = 0; i < EACH; i++) {
        if (lane + LANES * i < columns) to[i] = fused(factors[j], from[j * PITCH + lane + LANES * i], to[i]);
      }
    }
  }

  template <class T>
  METHOD static void store(T* to, const Matrix& m, u32 row, const W (&made)[EACH], u32 columns, W factor) {
    const u32 lane = threadIdx.x % LANES;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
      const u32 column = lane + LANES * i;
      if (column < columns) to[row * m.row + column * m.column] = Element<T>::narrow(made[i] * factor);
    }
  }
};

// What a number is for all threads of a row.
template <class J, u32 LANES, class W>
DEV W over_lanes(W own) {
#pragma unroll
  for (u32 step = 1; step < LANES; step *= 2) own = J::join(own, __shfl_xor_sync(0xffffffff, own, step));
  return own;
}

DEV u32 least(u32 a, u32 b) { return a < b ? a : b; }

template <class T, u32 WIDTH>
DEV void attend(const Attention& p) {
  typedef Wide<T> W;
  typedef Tile<W, WIDTH, 16384> Own;
  SHARED(W, query, Own::ELEMENTS);
  // The keys of a step, then their values.
  SHARED(W, other, Own::ELEMENTS);
  SHARED(W, shares, Own::ROWS * Own::SIDE);
  const Heads<T> heads(p, blockIdx.y / p.repeats, blockIdx.y % p.repeats);
  const u32 first = blockIdx.x * Own::ROWS, row = threadIdx.x / Own::LANES, lane = threadIdx.x % Own::LANES;
  const u32 own = first + row;
  Own::load(query, heads.query(), p.query, first, p.queries, p.width, Immediate<W>::of(p.scale));
  W largest = -Infinite<W>::value(), sum = W(0), made[Own::EACH];
#pragma unroll
  for (u32 i = 0; i < Own::EACH; i++) made[i] = W(0);
  const u32 seen = keys_seen(p, least(first + Own::ROWS, p.queries));
#pragma unroll 1
  for (u32 begin = 0; begin < seen; begin += Own::ROWS) {
    const u32 count = least(Own::ROWS, p.keys - begin);
    __syncthreads();
    Own::load(other, heads.key(), p.key, begin, p.keys, p.width, W(1));
    __syncthreads();
    W score[Own::SCORES], most = largest;
#pragma unroll
    for (u32 n = 0; n < Own::SCORES; n++) {
      const u32 j = lane + Own::LANES * n;
      score[n] = -Infinite<W>::value();
      if (j >= count || own >= p.queries) continue;
      score[n] = heads.masked(Own::dot(query + row * Own::PITCH, other + j * Own::PITCH, p.width), own, begin + j);
      most = larger(most, score[n]);
    }
    most = over_lanes<Largest, Own::LANES>(most);
    // With nothing to look at so far every distance is from 0, and every share 0.
    const W from = most == -Infinite<W>::value() ? W(0) : most;
    const W kept = exp_(largest - from);
    largest = most;
    sum *= kept;
#pragma unroll
    for (u32 i = 0; i < Own::EACH; i++) made[i] *= kept;
#pragma unroll
    for (u32 n = 0; n < Own::SCORES; n++) {
      const u32 j = lane + Own::LANES * n;
      if (j >= count) continue;
      const W share = exp_(score[n] - from);
      sum += share;
      shares[row * Own::SIDE + j] = share;
    }
    __syncthreads();
    Own::load(other, heads.value(), p.value, begin, p.keys, p.values, W(1));
    __syncthreads();
    Own::add(made, shares + row * Own::SIDE, other, count, p.values);
  }
  const Ending<W> ending(p, largest, over_lanes<Added, Own::LANES>(sum));
  if (own >= p.queries) return;
  Own::store(heads.out(), p.out, own, made, p.values, ending.factor);
  if (lane == 0 && p.logsumexp.data != nullptr) heads.logsumexp_out(own) = ending.logsumexp;
}

// The largest score of a query, and the sum of the exponentials of the distances from it, by a warp.
template <class T>
struct Scored {
  typedef Wide<T> W;
  W largest, sum;
  METHOD Scored(const Heads<T>& heads, u32 query) : largest(-Infinite<W>::value()), sum(W(0)) {
    const Attention& p = heads.p;
    const W scale = Immediate<W>::of(p.scale);
    const T* own = heads.query() + query * p.query.row;
    const u32 seen = keys_seen(p, query + 1);
    for (u32 key = threadIdx.x % 32; key < seen; key += 32) {
      const T* other = heads.key() + key * p.key.row;
      W dot = W(0);
      for (u32 k = 0; k < p.width; k++) {
        dot = fused(Element<T>::widen(own[k * p.query.column]) * scale, Element<T>::widen(other[k * p.key.column]), dot);
      }
      const W score = heads.masked(dot, query, key), most = larger(largest, score);
      if (most == -Infinite<W>::value()) continue;
      sum = sum * exp_(largest - most) + exp_(score - most);
      largest = most;
    }
    const W most = over_lanes<Largest, 32>(largest);
    sum = over_lanes<Added, 32>(most == -Infinite<W>::value() ? W(0) : sum * exp_(largest - most));
    largest = most;
  }
};

// From here on the logarithm of a sum has too few digits to say the sum: those of a score and a mask of large numbers are lost.
constexpr float LARGE_LOGARITHM = 64.0f;

// Statistics of queries, each by a warp.
template <class T>
DEV void take_statistics(const Attention& p) {
  typedef Wide<T> W;
  const u32 query = blockIdx.x * (ATTENTION_THREADS / 32) + threadIdx.x / 32;
  const Heads<T> heads(p, blockIdx.y / p.repeats, blockIdx.y % p.repeats);
  W sum = W(0);
  if (query < p.queries) {
    const T *grad = heads.grad() + query * p.grad.row, *out = heads.out() + query * p.out.row;
    for (u32 column = threadIdx.x % 32; column < p.values; column += 32) {
      sum = fused(Element<T>::widen(grad[column * p.grad.column]), Element<T>::widen(out[column * p.out.column]), sum);
    }
  }
  sum = over_lanes<Added, 32>(sum);
  if (query >= p.queries) return;
  QueryStatistics<W> made{sum, heads.logsumexp(query), W(1)};
  if (is_finite(made.from) && magnitude_(made.from) >= W(LARGE_LOGARITHM)) {
    const Scored<T> scored(heads, query);
    if (is_finite(scored.largest)) {
      made.from = scored.largest;
      made.factor = W(1) / scored.sum;
    }
  }
  if (threadIdx.x % 32 == 0) statistics_of<W>(p, blockIdx.y, query) = made;
}

// Gradients of the queries of a block.
template <class T, u32 WIDTH>
DEV void query_gradient(const Attention& p) {
  typedef Wide<T> W;
  typedef Tile<W, WIDTH, 8192> Own;
  SHARED(W, query, Own::ELEMENTS);
  SHARED(W, grad, Own::ELEMENTS);
  SHARED(W, key, Own::ELEMENTS);
  SHARED(W, value, Own::ELEMENTS);
  SHARED(W, slopes, Own::ROWS * Own::SIDE);
  const Heads<T> heads(p, blockIdx.y / p.repeats, blockIdx.y % p.repeats);
  const u32 first = blockIdx.x * Own::ROWS, row = threadIdx.x / Own::LANES, lane = threadIdx.x % Own::LANES;
  const u32 own = first + row;
  const bool has_row = own < p.queries;
  const W scale = Immediate<W>::of(p.scale);
  Own::load(query, heads.query(), p.query, first, p.queries, p.width, scale);
  Own::load(grad, heads.grad(), p.grad, first, p.queries, p.values, W(1));
  const QueryStatistics<W> of = has_row ? statistics_of<W>(p, blockIdx.y, own) : QueryStatistics<W>{};
  W made[Own::EACH];
#pragma unroll
  for (u32 i = 0; i < Own::EACH; i++) made[i] = W(0);
  const u32 seen = keys_seen(p, least(first + Own::ROWS, p.queries));
#pragma unroll 1
  for (u32 begin = 0; begin < seen; begin += Own::ROWS) {
    const u32 count = least(Own::ROWS, p.keys - begin);
    __syncthreads();
    Own::load(key, heads.key(), p.key, begin, p.keys, p.width, W(1));
    Own::load(value, heads.value(), p.value, begin, p.keys, p.values, W(1));
    __syncthreads();
#pragma unroll
    for (u32 n = 0; n < Own::SCORES; n++) {
      const u32 j = lane + Own::LANES * n;
      if (j >= count || !has_row) continue;
      const W score = heads.masked(Own::dot(query + row * Own::PITCH, key + j * Own::PITCH, p.width), own, begin + j);
      const W along = Own::dot(grad + row * Own::PITCH, value + j * Own::PITCH, p.values);
      slopes[row * Own::SIDE + j] = exp_(score - of.from) * of.factor * (along - of.delta);
    }
    __syncwarp();
    if (has_row) Own::add(made, slopes + row * Own::SIDE, key, count, p.width);
  }
  if (has_row) Own::store(heads.of_query(), p.of_query, own, made, p.width, scale);
}

// Gradients of the keys and values of a block, over all queries of all heads that look at them.
template <class T, u32 WIDTH>
DEV void key_gradient(const Attention& p) {
  typedef Wide<T> W;
  typedef Tile<W, WIDTH, 8192> Own;
  SHARED(W, query, Own::ELEMENTS);
  SHARED(W, grad, Own::ELEMENTS);
  SHARED(W, key, Own::ELEMENTS);
  SHARED(W, value, Own::ELEMENTS);
  SHARED(W, shares, Own::ROWS * Own::SIDE);
  SHARED(W, slopes, Own::ROWS * Own::SIDE);
  const u32 first = blockIdx.x * Own::ROWS, row = threadIdx.x / Own::LANES, lane = threadIdx.x % Own::LANES;
  const u32 own = first + row;
  const bool has_row = own < p.keys;
  Heads<T> heads(p, blockIdx.y, 0);
  Own::load(key, heads.key(), p.key, first, p.keys, p.width, W(1));
  Own::load(value, heads.value(), p.value, first, p.keys, p.values, W(1));
  W of_key[Own::EACH], of_value[Own::EACH];
#pragma unroll
  for (u32 i = 0; i < Own::EACH; i++) of_key[i] = of_value[i] = W(0);
#pragma unroll 1
  for (; heads.repeat < p.repeats; heads.repeat++) {
    const u32 head = blockIdx.y * p.repeats + heads.repeat;
    // Of the queries before the first key none looks at it.
#pragma unroll 1
    for (u32 begin = p.causal ? first : 0; begin < p.queries; begin += Own::ROWS) {
      const u32 count = least(Own::ROWS, p.queries - begin);
      __syncthreads();
      Own::load(query, heads.query(), p.query, begin, p.queries, p.width, Immediate<W>::of(p.scale));
      Own::load(grad, heads.grad(), p.grad, begin, p.queries, p.values, W(1));
      __syncthreads();
#pragma unroll
      for (u32 n = 0; n < Own::SCORES; n++) {
        const u32 i = lane + Own::LANES * n;
        if (i >= count || !has_row) continue;
        const W score = heads.masked(Own::dot(query + i * Own::PITCH, key + row * Own::PITCH, p.width), begin + i, own);
        const W along = Own::dot(grad + i * Own::PITCH, value + row * Own::PITCH, p.values);
        const QueryStatistics<W> of = statistics_of<W>(p, head, begin + i);
        const W share = exp_(score - of.from) * of.factor;
        shares[row * Own::SIDE + i] = share;
        slopes[row * Own::SIDE + i] = share * (along - of.delta);
      }
      __syncwarp();
      if (!has_row) continue;
      Own::add(of_value, shares + row * Own::SIDE, grad, count, p.values);
      // The queries are multiplied by the scale already.
      Own::add(of_key, slopes + row * Own::SIDE, query, count, p.width);
    }
  }
  if (!has_row) return;
  heads.repeat = 0;
  Own::store(heads.of_key(), p.of_key, own, of_key, p.width, W(1));
  Own::store(heads.of_value(), p.of_value, own, of_value, p.values, W(1));
}

// Heads of up to 128 and of up to 256 numbers.
#define ATTENTION(name, signature, host, dtypes) dtypes(ATTENTION_ENTRIES, name)
#define ATTENTION_ENTRIES(dtype, T, name)                                                       \
  KERNEL(attention_##dtype##_statistics, Attention) { take_statistics<T>(p); }                  \
  ATTENTION_WIDTH(dtype, T, 128)                                                                \
  ATTENTION_WIDTH(dtype, T, 256)
#define ATTENTION_WIDTH(dtype, T, width)                                                        \
  KERNEL(attention_##dtype##_##width, Attention) { attend<T, width>(p); }                       \
  KERNEL(attention_##dtype##_query_##width, Attention) { query_gradient<T, width>(p); }         \
  KERNEL(attention_##dtype##_key_##width, Attention) { key_gradient<T, width>(p); }

ATTENTION(scaled_dot_product_attention, "TTTOfbfb>T", attention, FLOATS)
REGISTER(flash_attention, "TTTObf>TT", flash, FLOATS)
REGISTER(flash_attention_backward, "TTTTOTTbf>TTT", flash_backward, FLOATS)
