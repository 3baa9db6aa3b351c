// Attention without a score matrix: a block of queries iterates over tiles of keys with a running maximum and a running sum
// (online softmax; M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao et al.,
// "FlashAttention", 2022). Gradients recompute the scores. The gradient of a query is summed over keys, and that of a key
// over queries, each within one block, so that results are bit-identical on every run.
#include "attention.cuh"

// The tiling of a block: `ROWS` rows of one operand, and `OTHERS` rows of the other operand per step. `LANES` neighbouring
// threads of a warp share `EACH` rows, `GROUPS` apart: each thread computes the scores of every `LANES`th row of the other
// operand, and pieces of columns of the output. So each loaded value is used in several products.
template <class W, u32 WIDTH, u32 EACH_, u32 OTHERS_, u32 LANES_ = 8>
struct Tile {
  static constexpr u32 LANES = LANES_, EACH = EACH_, OTHERS = OTHERS_, GROUPS = ATTENTION_THREADS / LANES, ROWS = GROUPS * EACH;
  static constexpr u32 SCORES = OTHERS < LANES ? 1 : OTHERS / LANES, V = Piece<W>::count, PIECES = WIDTH / (LANES * V);
  // Padded by one piece, so that neighbouring rows start in different banks.
  static constexpr u32 PITCH = WIDTH + V, SIDE = OTHERS + V;
  typedef W Scores[EACH][SCORES];
  typedef W Made[EACH][PIECES * V];

  // The thread's index among the threads that share its rows, and the first of these rows.
  METHOD static u32 lane() { return threadIdx.x % LANES; }
  METHOD static u32 group() { return threadIdx.x / LANES; }
  METHOD static const Piece<W>& piece(const W* at) { return *reinterpret_cast<const Piece<W>*>(at); }

  // Loads `COUNT` rows, starting at `first`, times a factor; pads with zeros below the last row and after the last column.
  // A warp reads one row.
  template <u32 COUNT, class T>
  METHOD static void load(W* to, const T* from, const Matrix& m, u32 first, u32 rows, u32 columns, W factor) {
#pragma unroll(WIDTH > 64 ? 1 : 4)
    for (u32 row = threadIdx.x / 32; row < COUNT; row += ATTENTION_THREADS / 32) {
      const bool inside = first + row < rows;
      const T* own = from + (first + row) * m.row;
#pragma unroll
      for (u32 column = threadIdx.x % 32; column < WIDTH; column += 32) {
        const bool is_there = inside && column < columns;
        to[row * PITCH + column] = is_there ? Element<T>::widen(own[column * m.column]) * factor : W(0);
      }
    }
  }

  // The dot products of the thread's rows with every `LANES`th row of the other operand.
  METHOD static void multiply(Scores& to, const W* own, const W* other, u32 columns) {
    const W *rows = own + group() * PITCH, *others = other + (OTHERS < LANES ? lane() % OTHERS : lane()) * PITCH;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
#pragma unroll
      for (u32 n = 0; n < SCORES; n++) to[i][n] = W(0);
    }
#pragma unroll 1
    for (u32 k = 0; k < columns; k += V) {
      Piece<W> a[EACH], b[SCORES];
#pragma unroll
      for (u32 i = 0; i < EACH; i++) a[i] = piece(rows + GROUPS * i * PITCH + k);
#pragma unroll
      for (u32 n = 0; n < SCORES; n++) b[n] = piece(others + LANES * n * PITCH + k);
#pragma unroll
      for (u32 v = 0; v < V; v++) {
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
#pragma unroll
          for (u32 n = 0; n < SCORES; n++) to[i][n] = fused(a[i].at[v], b[n].at[v], to[i][n]);
        }
      }
    }
  }

  // Stores the thread's weights in shared memory, for the other threads of its rows.
  METHOD static void share(W* shares, const Scores& from) {
    if (OTHERS < LANES && lane() >= OTHERS) return;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
#pragma unroll
      for (u32 n = 0; n < SCORES; n++) shares[(group() + GROUPS * i) * SIDE + lane() + LANES * n] = from[i][n];
    }
  }

  // Accumulates the rows of the other operand, each times its weight, in the thread's columns.
  METHOD static void add(Made& to, const W* shares, const W* other) {
    const W *factors = shares + group() * SIDE, *columns = other + lane() * V;
#pragma unroll 1
    for (u32 j = 0; j < OTHERS; j += V) {
      Piece<W> factor[EACH];
#pragma unroll
      for (u32 i = 0; i < EACH; i++) factor[i] = piece(factors + GROUPS * i * SIDE + j);
#pragma unroll
      for (u32 v = 0; v < V; v++) {
#pragma unroll
        for (u32 c = 0; c < PIECES; c++) {
          const Piece<W> own = piece(columns + (j + v) * PITCH + c * LANES * V);
#pragma unroll
          for (u32 i = 0; i < EACH; i++) {
#pragma unroll
            for (u32 e = 0; e < V; e++) to[i][c * V + e] = fused(factor[i].at[v], own.at[e], to[i][c * V + e]);
          }
        }
      }
    }
  }

  template <class T>
  METHOD static void store(T* to, const Matrix& m, u32 row, const W (&made)[PIECES * V], u32 columns, W factor) {
#pragma unroll
    for (u32 c = 0; c < PIECES; c++) {
#pragma unroll
      for (u32 e = 0; e < V; e++) {
        const u32 column = (lane() + LANES * c) * V + e;
        if (column < columns) to[row * m.row + column * m.column] = Element<T>::narrow(made[c * V + e] * factor);
      }
    }
  }
};

// The tilings of the forward pass, and of gradients, which hold two rows of each operand: they fit the 48 KiB of shared
// memory that every chip provides per block. The numbers of rows must equal `WIDTHS` in attention.rs.
template <class W, u32 WIDTH>
struct Forward;
template <>
struct Forward<float, 64> : Tile<float, 64, 4, 32> {};
template <>
struct Forward<float, 128> : Tile<float, 128, 4, 16> {};
template <>
struct Forward<float, 256> : Tile<float, 256, 2, 8> {};
template <>
struct Forward<double, 64> : Tile<double, 64, 2, 32> {};
template <>
struct Forward<double, 128> : Tile<double, 128, 2, 8> {};
template <>
struct Forward<double, 256> : Tile<double, 256, 1, 4> {};
template <class W, u32 WIDTH>
struct Backward;
template <>
struct Backward<float, 64> : Tile<float, 64, 2, 32> {};
template <>
struct Backward<float, 128> : Tile<float, 128, 2, 8> {};
template <>
struct Backward<float, 256> : Tile<float, 256, 1, 4> {};
template <>
struct Backward<double, 64> : Tile<double, 64, 2, 8> {};
template <>
struct Backward<double, 128> : Tile<double, 128, 1, 4> {};
template <>
struct Backward<double, 256> : Tile<double, 256, 1, 4, 32> {};

// Reduces a value over the threads of a row.
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
  typedef Forward<W, WIDTH> Own;
  constexpr u32 EACH = Own::EACH, SCORES = Own::SCORES, LANES = Own::LANES;
  SHARED(W, query, Own::ROWS * Own::PITCH);
  // The keys of a step, then its values.
  SHARED(W, other, Own::OTHERS * Own::PITCH);
  SHARED(W, shares, Own::ROWS * Own::SIDE);
  const Heads<T> heads(p, blockIdx.y / p.repeats, blockIdx.y % p.repeats);
  const u32 first = blockIdx.x * Own::ROWS, own = first + Own::group();
  Own::template load<Own::ROWS>(query, heads.query(), p.query, first, p.queries, p.width, Immediate<W>::of(p.scale));
  W largest[EACH], sum[EACH];
  typename Own::Made made;
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    largest[i] = -Infinite<W>::value();
    sum[i] = W(0);
#pragma unroll
    for (u32 c = 0; c < WIDTH / LANES; c++) made[i][c] = W(0);
  }
  const u32 seen = keys_seen(p, least(first + Own::ROWS, p.queries));
#pragma unroll 1
  for (u32 begin = 0; begin < seen; begin += Own::OTHERS) {
    __syncthreads();
    Own::template load<Own::OTHERS>(other, heads.key(), p.key, begin, p.keys, p.width, W(1));
    __syncthreads();
    typename Own::Scores score;
    Own::multiply(score, query, other, p.width);
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
      const u32 row = own + Own::GROUPS * i;
      W most = largest[i];
#pragma unroll
      for (u32 n = 0; n < SCORES; n++) {
        const u32 j = Own::lane() + LANES * n;
        const bool is_there = j < Own::OTHERS && begin + j < p.keys && row < p.queries;
        score[i][n] = is_there ? heads.masked(score[i][n], row, begin + j) : -Infinite<W>::value();
        most = larger(most, score[i][n]);
      }
      most = over_lanes<Largest, LANES>(most);
      // If all keys so far are masked, differences are taken from 0, and every weight is 0.
      const W from = most == -Infinite<W>::value() ? W(0) : most, kept = exp_(largest[i] - from);
      largest[i] = most;
      sum[i] *= kept;
#pragma unroll
      for (u32 c = 0; c < WIDTH / LANES; c++) made[i][c] *= kept;
#pragma unroll
      for (u32 n = 0; n < SCORES; n++) {
        score[i][n] = exp_(score[i][n] - from);
        sum[i] += score[i][n];
      }
    }
    Own::share(shares, score);
    __syncthreads();
    Own::template load<Own::OTHERS>(other, heads.value(), p.value, begin, p.keys, p.values, W(1));
    __syncthreads();
    Own::add(made, shares, other);
  }
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u32 row = own + Own::GROUPS * i;
    const Ending<W> ending(p, largest[i], over_lanes<Added, LANES>(sum[i]));
    if (row >= p.queries) continue;
    Own::store(heads.out(), p.out, row, made[i], p.values, ending.factor);
    if (Own::lane() == 0 && p.logsumexp.data != nullptr) heads.logsumexp_out(row) = ending.logsumexp;
  }
}

// The maximum score of a query, and the sum of exp(score - maximum), computed by one warp.
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

// Above this, a logsumexp in f32 is too imprecise to recover the sum: the digits of scores and masks with large values are
// lost.
constexpr float LARGE_LOGARITHM = 64.0f;

// The statistics of queries, one per warp.
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

// The weight of a query and key, and the gradient of their score; zeros if the pair is masked or out of range.
template <class W>
struct Slope {
  W share, slope;
  METHOD Slope(bool is_there, W score, W along, const QueryStatistics<W>& of) {
    share = is_there ? exp_(score - of.from) * of.factor : W(0);
    slope = is_there ? share * (along - of.delta) : W(0);
  }
};

// The gradients of a block of queries.
template <class T, u32 WIDTH>
DEV void query_gradient(const Attention& p) {
  typedef Wide<T> W;
  typedef Backward<W, WIDTH> Own;
  constexpr u32 EACH = Own::EACH, LANES = Own::LANES;
  SHARED(W, query, Own::ROWS * Own::PITCH);
  SHARED(W, grad, Own::ROWS * Own::PITCH);
  SHARED(W, key, Own::OTHERS * Own::PITCH);
  SHARED(W, value, Own::OTHERS * Own::PITCH);
  SHARED(W, slopes, Own::ROWS * Own::SIDE);
  const Heads<T> heads(p, blockIdx.y / p.repeats, blockIdx.y % p.repeats);
  const u32 first = blockIdx.x * Own::ROWS, own = first + Own::group();
  const W scale = Immediate<W>::of(p.scale);
  Own::template load<Own::ROWS>(query, heads.query(), p.query, first, p.queries, p.width, scale);
  Own::template load<Own::ROWS>(grad, heads.grad(), p.grad, first, p.queries, p.values, W(1));
  QueryStatistics<W> of[EACH];
  typename Own::Made made;
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u32 row = own + Own::GROUPS * i;
    of[i] = row < p.queries ? statistics_of<W>(p, blockIdx.y, row) : QueryStatistics<W>{};
#pragma unroll
    for (u32 c = 0; c < WIDTH / LANES; c++) made[i][c] = W(0);
  }
  const u32 seen = keys_seen(p, least(first + Own::ROWS, p.queries));
#pragma unroll 1
  for (u32 begin = 0; begin < seen; begin += Own::OTHERS) {
    __syncthreads();
    Own::template load<Own::OTHERS>(key, heads.key(), p.key, begin, p.keys, p.width, W(1));
    Own::template load<Own::OTHERS>(value, heads.value(), p.value, begin, p.keys, p.values, W(1));
    __syncthreads();
    typename Own::Scores score, along;
    Own::multiply(score, query, key, p.width);
    Own::multiply(along, grad, value, p.values);
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
      const u32 row = own + Own::GROUPS * i;
#pragma unroll
      for (u32 n = 0; n < Own::SCORES; n++) {
        const u32 j = Own::lane() + LANES * n;
        const bool is_there = j < Own::OTHERS && begin + j < p.keys && row < p.queries;
        const W masked = is_there ? heads.masked(score[i][n], row, begin + j) : W(0);
        score[i][n] = Slope<W>(is_there, masked, along[i][n], of[i]).slope;
      }
    }
    Own::share(slopes, score);
    __syncwarp();
    Own::add(made, slopes, key);
  }
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u32 row = own + Own::GROUPS * i;
    if (row < p.queries) Own::store(heads.of_query(), p.of_query, row, made[i], p.width, scale);
  }
}

// The gradients of a block of keys and values, over all queries of all heads that attend to them.
template <class T, u32 WIDTH>
DEV void key_gradient(const Attention& p) {
  typedef Wide<T> W;
  typedef Backward<W, WIDTH> Own;
  constexpr u32 EACH = Own::EACH, LANES = Own::LANES;
  SHARED(W, query, Own::OTHERS * Own::PITCH);
  SHARED(W, grad, Own::OTHERS * Own::PITCH);
  SHARED(W, key, Own::ROWS * Own::PITCH);
  SHARED(W, value, Own::ROWS * Own::PITCH);
  // The weights of a step, then the gradients of the scores.
  SHARED(W, shares, Own::ROWS * Own::SIDE);
  const u32 first = blockIdx.x * Own::ROWS, own = first + Own::group();
  Heads<T> heads(p, blockIdx.y, 0);
  Own::template load<Own::ROWS>(key, heads.key(), p.key, first, p.keys, p.width, W(1));
  Own::template load<Own::ROWS>(value, heads.value(), p.value, first, p.keys, p.values, W(1));
  typename Own::Made of_key, of_value;
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
#pragma unroll
    for (u32 c = 0; c < WIDTH / LANES; c++) of_key[i][c] = of_value[i][c] = W(0);
  }
#pragma unroll 1
  for (; heads.repeat < p.repeats; heads.repeat++) {
    const u32 head = blockIdx.y * p.repeats + heads.repeat;
    // With a causal mask, queries before the first key do not attend to it.
#pragma unroll 1
    for (u32 begin = p.causal ? first : 0; begin < p.queries; begin += Own::OTHERS) {
      __syncthreads();
      Own::template load<Own::OTHERS>(query, heads.query(), p.query, begin, p.queries, p.width, Immediate<W>::of(p.scale));
      Own::template load<Own::OTHERS>(grad, heads.grad(), p.grad, begin, p.queries, p.values, W(1));
      __syncthreads();
      typename Own::Scores score, along;
      Own::multiply(score, key, query, p.width);
      Own::multiply(along, value, grad, p.values);
#pragma unroll
      for (u32 n = 0; n < Own::SCORES; n++) {
        const u32 j = Own::lane() + LANES * n, at = begin + j;
        const bool is_query = j < Own::OTHERS && at < p.queries;
        const QueryStatistics<W> of = is_query ? statistics_of<W>(p, head, at) : QueryStatistics<W>{};
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
          const u32 row = own + Own::GROUPS * i;
          const bool is_there = is_query && row < p.keys;
          const W masked = is_there ? heads.masked(score[i][n], at, row) : W(0);
          const Slope<W> made(is_there, masked, along[i][n], of);
          score[i][n] = made.share;
          along[i][n] = made.slope;
        }
      }
      Own::share(shares, score);
      __syncwarp();
      Own::add(of_value, shares, grad);
      __syncwarp();
      Own::share(shares, along);
      __syncwarp();
      // The queries are already scaled.
      Own::add(of_key, shares, query);
    }
  }
  heads.repeat = 0;
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u32 row = own + Own::GROUPS * i;
    if (row >= p.keys) continue;
    Own::store(heads.of_key(), p.of_key, row, of_key[i], p.width, W(1));
    Own::store(heads.of_value(), p.of_value, row, of_value[i], p.values, W(1));
  }
}

// Kernels for head dimensions up to 64, 128 and 256. f16 and bf16 with head dimensions up to 128 use tensor cores, if the
// chip has them.
#define ATTENTION(name, signature, host, dtypes) dtypes(ATTENTION_ENTRIES, name) WIDE(ATTENTION_WIDTH, 64)
#define WIDE(M, x) M(f32, float, x) M(f64, double, x)
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
