// Attention without a mask by warpgroup products, if the head dimension is that of the kernel and rows are contiguous and
// aligned: as attend_plain in attention_plain.cuh, for chips whose products read both operands from shared memory
// asynchronously. The two blocks of a multiprocessor alternate: one multiplies while the other computes weights.
#pragma once
#include "attention_plain.cuh"
#include "groups.cuh"

// The tiling for head dimension `WIDTH`: a block has `GROUPS` warpgroups of 64 queries each, reads `KEYS` keys per step,
// and buffers `STAGES` tiles of keys and of values in shared memory; `BLOCKS` blocks share a multiprocessor. Threads and
// bytes must equal those of `Groups` in attention.rs.
template <u32 WIDTH_, u32 GROUPS, u32 KEYS_, u32 STAGES_, u32 BLOCKS_>
struct GroupsShape {
  static constexpr u32 WIDTH = WIDTH_, KEYS = KEYS_, STAGES = STAGES_, BLOCKS = BLOCKS_;
  static constexpr u32 THREADS = GROUPS * 128, ROWS = GROUPS * 64, TILE = KEYS * WIDTH * 2;
  static constexpr u32 QUERY_BYTES = ROWS * WIDTH * 2, BYTES = QUERY_BYTES + 2 * STAGES * TILE;
  // The driver reserves one KiB of shared memory per block.
  static_assert(BLOCKS * (BYTES + 1024) <= 228 * 1024, "blocks fit a multiprocessor");
};

// Copies `ROWS` rows of `WIDTH` elements, starting at `first`, by `THREADS` threads; pads with zeros after the last row.
// Columns are split into parts of 64, each of which is a matrix of `groups.cuh`.
template <class T, u32 WIDTH, u32 ROWS, u32 THREADS>
DEV void fetch_rows(u32 to, const T* from, i64 stride, u32 first, u32 rows, u32 thread) {
  constexpr u32 STEP_ROWS = THREADS / 8;
  static_assert(ROWS % STEP_ROWS == 0 && STEP_ROWS % 8 == 0, "each thread has as many, in the same place of eight rows");
  const u32 row = thread / 8, column = thread % 8, place = to + row * 128 + ((column ^ (row & 7)) << 4);
  const bool whole = first + ROWS <= rows;
  const T* at = from + (i64)(first + row) * stride + column * 8;
#pragma unroll
  for (u32 part = 0; part < WIDTH / 64; part++) {
#pragma unroll
    for (u32 r = 0; r < ROWS; r += STEP_ROWS) {
      const bool inside = whole || first + row + r < rows;
      const T* source = inside ? at + (i64)r * stride + part * 64 : from;
      copy_to_shared(place + (part * ROWS + r) * 128, source, inside ? 16 : 0);
    }
  }
}

// The accumulators of a thread for a warp's 16 queries: rows lane / 4 and lane / 4 + 8, as `Sums` of 8 columns each.
template <class T, class S>
struct GroupsWalk {
  static constexpr u32 KEYS = S::KEYS, WIDTH = S::WIDTH;
  float made[WIDTH / 2], score[KEYS / 2], largest[2], sum[2], kept[2], from[2];

  METHOD GroupsWalk() {
#pragma unroll
    for (u32 i = 0; i < WIDTH / 2; i++) made[i] = 0.0f;
    largest[0] = largest[1] = -Infinite<float>::value();
    sum[0] = sum[1] = 0.0f;
  }
  // Computes the scores of the group's queries and a tile of keys.
  METHOD void multiply(u32 query, u32 key) {
    const u64 left = matrix_in_shared(query, 16), right = matrix_in_shared(key, 16);
#pragma unroll
    for (u32 k = 0; k < WIDTH / 16; k++) {
      const u32 part = k / 4, inside = k % 4 * 32;
      Group<T, KEYS>::add(score, left + (part * 64 * 128 + inside) / 16, right + (part * KEYS * 128 + inside) / 16, k != 0);
    }
  }
  // Masks keys after the last, or after the query of a causal call.
  METHOD void cut(u32 begin, u32 own, u32 keys, bool causal) {
#pragma unroll
    for (u32 n = 0; n < KEYS / 8; n++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        const u32 row = own + i / 2 * 8, at = begin + n * 8 + threadIdx.x % 4 * 2 + i % 2;
        if (at >= keys || (causal && at > row)) score[4 * n + i] = -Infinite<float>::value();
      }
    }
  }
  // Updates the running maxima, and rescales the sums and results; as in attend_plain.
  METHOD void look(float in_twos) {
#pragma unroll
    for (u32 below = 0; below < 2; below++) {
      // Two independent chains of maxima, which halves the latency.
      float most = fmaxf(score[2 * below], score[2 * below + 1]), other = largest[below];
#pragma unroll
      for (u32 n = 1; n < KEYS / 8; n++) {
        most = fmaxf(most, score[4 * n + 2 * below]);
        other = fmaxf(other, score[4 * n + 2 * below + 1]);
      }
      most = fmaxf(most, other);
      most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 2));
      from[below] = most == -Infinite<float>::value() ? 0.0f : most * in_twos;
      kept[below] = power_of_two(fused(largest[below], in_twos, -from[below]));
      largest[below] = most;
      sum[below] *= kept[below];
    }
#pragma unroll
    for (u32 i = 0; i < WIDTH / 2; i++) made[i] *= kept[i % 4 / 2];
  }
  // Replaces scores by weights.
  METHOD void weigh(float in_twos) {
#pragma unroll
    for (u32 below = 0; below < 2; below++) {
      float added[2] = {};
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n++) {
#pragma unroll
        for (u32 second = 0; second < 2; second++) {
          float& x = score[4 * n + 2 * below + second];
          x = power_of_two(fused(x, in_twos, -from[below]));
          added[second] += x;
        }
      }
      sum[below] += added[0] + added[1];
    }
  }
  METHOD void round(u32 (&weight)[KEYS / 16][4]) const {
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        const u32 at = 4 * (2 * k + i / 2) + i % 2 * 2;
        weight[k][i] = paired<T>(score[at], score[at + 1]);
      }
    }
  }
  METHOD void add(const u32 (&weight)[KEYS / 16][4], u32 value) {
    const u64 right = matrix_in_shared(value, KEYS * 128);
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++) Group<T, WIDTH>::add_by_terms(made, weight[k], right + k * 2048 / 16);
  }
  // Stores a row, or nothing if it is not `there`; all lanes must call it.
  METHOD void store(T* to, i64 step, bool in_pieces, u32 below, float factor, bool there) const {
    const u32 lane = threadIdx.x % 32;
    if (!in_pieces) {
      if (!there) return;
#pragma unroll
      for (u32 i = 0; i < WIDTH / 4; i++) {
        const u32 n = i / 2, second = i % 2;
        to[(n * 8 + lane % 4 * 2 + second) * step] = Element<T>::narrow(made[4 * n + 2 * below + second] * factor);
      }
      return;
    }
    // Four threads with two columns each of 32 exchange them, so that each has 8 contiguous columns.
    const bool odd = lane & 1, high = lane & 2;
#pragma unroll
    for (u32 n = 0; n < WIDTH / 8; n += 4) {
      u32 word[4];
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        const u32 at = 4 * (n + j) + 2 * below;
        word[j] = paired<T>(made[at] * factor, made[at + 1] * factor);
      }
#pragma unroll
      for (u32 j = 0; j < 4; j += 2) {
        const u32 got = __shfl_xor_sync(0xffffffff, odd ? word[j] : word[j + 1], 1);
        if (odd) word[j] = got;
        else word[j + 1] = got;
      }
#pragma unroll
      for (u32 j = 0; j < 2; j++) {
        const u32 got = __shfl_xor_sync(0xffffffff, high ? word[j] : word[j + 2], 2);
        if (high) word[j] = got;
        else word[j + 2] = got;
      }
      if (there) *reinterpret_cast<Pack<u32, 4>*>(to + (n + lane % 4) * 8) = Pack<u32, 4>{{word[0], word[1], word[2], word[3]}};
    }
  }
};

// The query block and head of a thread block. Causal query blocks with the most keys start first, for as many heads at a
// time as have 16 MiB of keys and values, which L2 is assumed to hold.
template <u32 WIDTH>
DEV void take_turn(const Attention& p, u32& block, u32& head) {
  block = blockIdx.x;
  head = blockIdx.y;
  if (!p.causal) return;
  const u32 at = blockIdx.y * gridDim.x + blockIdx.x, bytes = p.keys * WIDTH * 4;
  const u32 fitting = (16u << 20) / (bytes == 0 ? 1 : bytes), heads = fitting < 1 ? 1 : fitting < gridDim.y ? fitting : gridDim.y;
  const u32 first = at / (heads * gridDim.x) * heads, inside = at - first * gridDim.x;
  const u32 there = gridDim.y - first < heads ? gridDim.y - first : heads;
  block = gridDim.x - 1 - inside / there;
  head = first + inside % there;
}

template <class T, class S>
DEV void attend_by_groups(const Attention& p) {
  constexpr u32 WIDTH = S::WIDTH, KEYS = S::KEYS, STAGES = S::STAGES, TILE = S::TILE;
  const u32 queries = shared_by_launch<S::BYTES>(), tiles_at = queries + S::QUERY_BYTES;
  u32 block, head;
  take_turn<WIDTH>(p, block, head);
  const Heads<T> heads(p, head / p.repeats, head % p.repeats);
  // Uniform over the warp, as the shuffle tells the compiler.
  const u32 warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32, first = block * S::ROWS;
  const u32 seen = keys_seen(p, first + S::ROWS < p.queries ? first + S::ROWS : p.queries), tiles = (seen + KEYS - 1) / KEYS;
  const u32 start = first + warp / 4 * 64, own = start + warp % 4 * 16 + lane / 4;
  const u32 query = queries + warp / 4 * (64 * WIDTH * 2);
  const float scale = Immediate<float>::of(p.scale), in_twos = scale * 1.44269504f;
  const auto fetch = [&](u32 tile) {
    if (tile < tiles) {
      const u32 at = tiles_at + tile % STAGES * 2 * TILE;
      fetch_rows<T, WIDTH, KEYS, S::THREADS>(at, heads.key(), p.key.row, tile * KEYS, p.keys, threadIdx.x);
      fetch_rows<T, WIDTH, KEYS, S::THREADS>(at + TILE, heads.value(), p.value.row, tile * KEYS, p.keys, threadIdx.x);
    }
    copies_begun();
  };
  // Fetched together with the first tile.
  fetch_rows<T, WIDTH, 64, 128>(query, heads.query(), p.query.row, start, p.queries, threadIdx.x % 128);
#pragma unroll
  for (u32 tile = 0; tile + 1 < STAGES; tile++) fetch(tile);
  GroupsWalk<T, S> walk;
  // The number of tiles to which the group's queries attend.
  u32 mine = keys_seen(p, start + 64 < p.queries ? start + 64 : p.queries);
  mine = start < p.queries ? (mine + KEYS - 1) / KEYS : 0;
  u32 weight[KEYS / 16][4];
#pragma unroll 1
  for (u32 tile = 0; tile < tiles; tile++) {
    copies_arrived<(int)STAGES - 2>();
    written_for_products();
    // After this barrier all threads have finished the previous tile, whose buffer is filled next.
    __syncthreads();
    fetch(tile + STAGES - 1);
    if (tile >= mine) continue;
    const u32 at = tiles_at + tile % STAGES * 2 * TILE, begin = tile * KEYS;
    products_may_begin();
    walk.multiply(query, at);
    products_begun();
    products_done();
    settled(walk.score);
    if (begin + KEYS > p.keys || (p.causal && begin + KEYS > start + 1)) walk.cut(begin, own, p.keys, p.causal);
    walk.look(in_twos);
    walk.weigh(in_twos);
    walk.round(weight);
    settled(walk.made);
    settled(weight);
    products_may_begin();
    walk.add(weight, at + TILE);
    products_begun();
    products_done();
    settled(walk.made);
  }
  copies_arrived<0>();  // Waits for all copies before the block ends.
#pragma unroll
  for (u32 below = 0; below < 2; below++) {
    const float whole = over_row_of_four<Added>(walk.sum[below]), most = walk.largest[below];
    const Ending<float> ending(p, most == -Infinite<float>::value() ? most : most * scale, whole);
    const u32 row = own + 8 * below;
    const bool there = row < p.queries;
    walk.store(heads.out() + row * p.out.row, p.out.column, p.pieces & OUT_PIECES, below, ending.factor, there);
    if (there && lane % 4 == 0 && p.logsumexp.data != nullptr) heads.logsumexp_out(row) = ending.logsumexp;
  }
}
