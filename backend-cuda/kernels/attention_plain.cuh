// Attention without a mask by tensor cores, if the head dimension is that of the kernel and rows are contiguous and
// aligned: queries, scores and results stay in registers, and the next keys and values are prefetched while the current
// ones are used. Weights are rounded to the operands' dtype before the second product, and their sums are not, as in
// FlashAttention-2 (Dao, 2023).
#pragma once
#include "attention_cores.cuh"

// 2^x.
DEV float power_of_two(float x) {
#ifdef KEYWAY_SHIM
  return exp2f(x);
#else
  float made;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(x));
  return made;
#endif
}

// A warp has `TALL` times 16 queries, a block of four warps belongs to one head; `KEYS` keys are read per step.
template <class T, u32 WIDTH, u32 TALL, u32 KEYS>
DEV void attend_plain(const Attention& p) {
  typedef Rows<T, WIDTH> Own;
  constexpr u32 OF_WARP = 16 * TALL, QUERIES = 4 * OF_WARP, PITCH = Own::PITCH, TILE = KEYS * PITCH;
  static_assert(QUERIES <= 4 * KEYS, "queries lie where tiles come later");
  // Two tiles of keys, then two of values.
  SHARED(u16, tiles, 4 * TILE);
  const Heads<T> heads(p, blockIdx.y / p.repeats, blockIdx.y % p.repeats);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Causal query blocks with the most keys start first.
  const u32 block = p.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x, first = block * QUERIES;
  const float scale = Immediate<float>::of(p.scale), in_twos = scale * 1.44269504f;
  const auto fetch = [&](u32 begin, u32 stage) {
    Own::template fetch<KEYS>(tiles + stage * TILE, heads.key(), p.key, begin, p.keys, WIDTH, true);
    Own::template fetch<KEYS>(tiles + (2 + stage) * TILE, heads.value(), p.value, begin, p.keys, WIDTH, true);
    copies_begun();
  };
  Own::template fetch<QUERIES>(tiles, heads.query(), p.query, first, p.queries, WIDTH, true);
  copies_begun();
  copies_arrived<0>();
  __syncthreads();
  LeftPart query[TALL][WIDTH / 16];
#pragma unroll
  for (u32 t = 0; t < TALL; t++) {
#pragma unroll
    for (u32 part = 0; part < WIDTH / 16; part++)
      load_left<PITCH>(query[t][part], tiles + (warp * OF_WARP + t * 16) * PITCH + part * 16, false);
  }
  __syncthreads();
  float largest[TALL][2], sum[TALL][2];
  Sums made[TALL][WIDTH / 8];
#pragma unroll
  for (u32 t = 0; t < TALL; t++) {
#pragma unroll
    for (u32 n = 0; n < WIDTH / 8; n++) made[t][n] = Sums{};
    largest[t][0] = largest[t][1] = -Infinite<float>::value();
    sum[t][0] = sum[t][1] = 0.0f;
  }
  const u32 seen = keys_seen(p, first + QUERIES < p.queries ? first + QUERIES : p.queries);
  u32 stage = 0;
  fetch(0, 0);
#pragma unroll 1
  for (u32 begin = 0; begin < seen; begin += KEYS, stage ^= 1) {
    copies_arrived<0>();
    __syncthreads();
    if (begin + KEYS < seen) fetch(begin + KEYS, stage ^ 1);
    const u16 *key = tiles + stage * TILE, *value = tiles + (2 + stage) * TILE;
    Sums score[TALL][KEYS / 8];
#pragma unroll
    for (u32 t = 0; t < TALL; t++) {
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n++) score[t][n] = Sums{};
    }
#pragma unroll
    for (u32 part = 0; part < WIDTH / 16; part++) {
#pragma unroll
      for (u32 n = 0; n < KEYS / 8; n += 2) {
        RightPart right[2];
        load_right<PITCH>(right, key + n * 8 * PITCH + part * 16, false);
#pragma unroll
        for (u32 t = 0; t < TALL; t++) {
          Cores<T>::add(score[t][n], query[t][part], right[0]);
          Cores<T>::add(score[t][n + 1], query[t][part], right[1]);
        }
      }
    }
    // Masks tiles that end after the last key, or after the warp's first query of a causal call.
    const u32 own = first + warp * OF_WARP + lane / 4;
    if (begin + KEYS > p.keys || (p.causal && begin + KEYS > first + warp * OF_WARP + 1)) {
#pragma unroll
      for (u32 t = 0; t < TALL; t++) {
#pragma unroll
        for (u32 n = 0; n < KEYS / 8; n++) {
#pragma unroll
          for (u32 i = 0; i < 4; i++) {
            const u32 row = own + t * 16 + i / 2 * 8, at = begin + n * 8 + lane % 4 * 2 + i % 2;
            if (at >= p.keys || (p.causal && at > row)) score[t][n].of[i] = -Infinite<float>::value();
          }
        }
      }
    }
#pragma unroll
    for (u32 t = 0; t < TALL; t++) {
#pragma unroll
      for (u32 below = 0; below < 2; below++) {
        // A NaN score makes its weight and the row's sum NaN; the maximum may ignore it.
        float most = largest[t][below];
#pragma unroll
        for (u32 n = 0; n < KEYS / 8; n++)
          most = fmaxf(most, fmaxf(score[t][n].of[2 * below], score[t][n].of[2 * below + 1]));
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 2));
        const float from = most == -Infinite<float>::value() ? 0.0f : most * in_twos;
        const float kept = power_of_two(fused(largest[t][below], in_twos, -from));
        largest[t][below] = most;
        float added = 0.0f;
#pragma unroll
        for (u32 n = 0; n < KEYS / 8; n++) {
#pragma unroll
          for (u32 second = 0; second < 2; second++) {
            float& x = score[t][n].of[2 * below + second];
            x = power_of_two(fused(x, in_twos, -from));
            added += x;
          }
        }
        sum[t][below] = fused(sum[t][below], kept, added);
#pragma unroll
        for (u32 n = 0; n < WIDTH / 8; n++) {
          made[t][n].of[2 * below] *= kept;
          made[t][n].of[2 * below + 1] *= kept;
        }
      }
    }
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++) {
      LeftPart weight[TALL];
#pragma unroll
      for (u32 t = 0; t < TALL; t++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
          const Sums& of = score[t][2 * k + i / 2];
          weight[t].pair[i] = paired<T>(of.of[i % 2 * 2], of.of[i % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (u32 n = 0; n < WIDTH / 8; n += 2) {
        RightPart right[2];
        load_right<PITCH>(right, value + k * 16 * PITCH + n * 8, true);
#pragma unroll
        for (u32 t = 0; t < TALL; t++) {
          Cores<T>::add(made[t][n], weight[t], right[0]);
          Cores<T>::add(made[t][n + 1], weight[t], right[1]);
        }
      }
    }
  }
  copies_arrived<0>();  // Waits for all copies before the block ends.
#pragma unroll
  for (u32 t = 0; t < TALL; t++) {
#pragma unroll
    for (u32 below = 0; below < 2; below++) {
      const float whole = over_row_of_four<Added>(sum[t][below]), most = largest[t][below] * scale;
      const Ending<float> ending(p, largest[t][below] == -Infinite<float>::value() ? largest[t][below] : most, whole);
      const u32 row = first + warp * OF_WARP + t * 16 + lane / 4 + 8 * below;
      if (row >= p.queries) continue;
      if (p.pieces & OUT_PIECES) {
        T* to = heads.out() + row * p.out.row + lane % 4 * 2;
#pragma unroll
        for (u32 n = 0; n < WIDTH / 8; n++) {
          const float low = made[t][n].of[2 * below] * ending.factor, high = made[t][n].of[2 * below + 1] * ending.factor;
          *reinterpret_cast<u32*>(to + n * 8) = paired<T>(low, high);
        }
      } else {
        Own::store(heads.out(), p.out, row, made[t], below, WIDTH, ending.factor);
      }
      if (lane % 4 == 0 && p.logsumexp.data != nullptr) heads.logsumexp_out(row) = ending.logsumexp;
    }
  }
}

// Fetches `COUNT` rows of the key and the value, or of the query and the gradient.
template <class T, u32 WIDTH, u32 COUNT, bool KEYS>
DEV void fetch_both(u16* to, const Heads<T>& heads, u32 begin) {
  typedef Rows<T, WIDTH> Own;
  const Attention& p = heads.p;
  u16* behind = to + COUNT * Own::PITCH;
  if constexpr (KEYS) {
    Own::template fetch<COUNT>(to, heads.key(), p.key, begin, p.keys, WIDTH, true);
    Own::template fetch<COUNT>(behind, heads.value(), p.value, begin, p.keys, WIDTH, true);
  } else {
    Own::template fetch<COUNT>(to, heads.query(), p.query, begin, p.queries, WIDTH, true);
    Own::template fetch<COUNT>(behind, heads.grad(), p.grad, begin, p.queries, WIDTH, true);
  }
}

// Accumulates the rows of a tile, each times its rounded weights for 16 rows. For f16, with its small exponent range, the
// weights of a row are first multiplied by a power of two.
template <class T, u32 WIDTH, u32 TILE>
DEV void add_rounded(Sums (&to)[WIDTH / 8], const Sums (&factors)[TILE / 8], const u16* tile) {
  constexpr u32 PITCH = Rows<T, WIDTH>::PITCH;
  const Power power[2] = {Power(factors, 0, SMALL_RANGE<T>), Power(factors, 1, SMALL_RANGE<T>)};
  LeftPart left[TILE / 16];
#pragma unroll
  for (u32 k = 0; k < TILE / 16; k++) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      const Sums& of = factors[2 * k + i / 2];
      left[k].pair[i] = paired<T>(of.of[i % 2 * 2] * power[i % 2].by, of.of[i % 2 * 2 + 1] * power[i % 2].by);
    }
  }
#pragma unroll
  for (u32 n = 0; n < WIDTH / 8; n += 2) {
    Sums sums[2] = {};
#pragma unroll
    for (u32 k = 0; k < TILE / 16; k++) {
      RightPart right[2];
      load_right<PITCH>(right, tile + k * 16 * PITCH + n * 8, true);
      Cores<T>::add(sums[0], left[k], right[0]);
      Cores<T>::add(sums[1], left[k], right[1]);
    }
#pragma unroll
    for (u32 i = 0; i < 8; i++) to[n + i / 4].of[i % 4] += sums[i / 4].of[i % 4] * power[i % 4 / 2].back;
  }
}

// The gradient of 64 queries or, if `OF_KEY`, of 64 keys and their values, under the same conditions: 16 rows for each of
// four warps. Rows are those of the operand whose gradient is computed, and stay in registers; each step reads `TILE` rows
// of the other operand, for `OF_KEY` with their statistics.
template <class T, u32 WIDTH, u32 TILE, bool OF_KEY>
DEV void gradient_plain(const Attention& p) {
  typedef Rows<T, WIDTH> Own;
  constexpr u32 ROWS = 64, PITCH = Own::PITCH, PART = TILE * PITCH, STAGE = 2 * PART, OWN = 2 * ROWS * PITCH;
  SHARED(u16, memory, OWN > 2 * STAGE ? OWN : 2 * STAGE);
  SHARED(QueryStatistics<float>, statistics, 2 * TILE);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, repeats = OF_KEY ? 1 : p.repeats;
  Heads<T> heads(p, blockIdx.y / repeats, blockIdx.y % repeats);
  const u32 block = p.causal && !OF_KEY ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const u32 first = block * ROWS, row = first + warp * 16 + lane / 4;
  const float scale = Immediate<float>::of(p.scale), log2_e = 1.44269504f, in_twos = scale * log2_e;
  fetch_both<T, WIDTH, ROWS, OF_KEY>(memory, heads, first);
  copies_begun();
  copies_arrived<0>();
  __syncthreads();
  LeftPart own[2][WIDTH / 16];
#pragma unroll
  for (u32 part = 0; part < WIDTH / 16; part++) {
    load_left<PITCH>(own[0][part], memory + warp * 16 * PITCH + part * 16, false);
    load_left<PITCH>(own[1][part], memory + (ROWS + warp * 16) * PITCH + part * 16, false);
  }
  __syncthreads();
  Sums made[WIDTH / 8] = {}, of_value[OF_KEY ? WIDTH / 8 : 1] = {};
  // The number of tiles of one query head, and of all query heads that share a key head.
  const u32 start = OF_KEY && p.causal ? first / TILE : 0;
  const u32 seen = OF_KEY ? p.queries : keys_seen(p, first + ROWS < p.queries ? first + ROWS : p.queries);
  const u32 end = (seen + TILE - 1) / TILE, each = end > start ? end - start : 0, tiles = each * (OF_KEY ? p.repeats : 1);
  const auto fetch = [&](u32 tile) {
    if (OF_KEY) heads.repeat = tile / each;
    const u32 stage = tile & 1, begin = (start + tile % each) * TILE;
    fetch_both<T, WIDTH, TILE, !OF_KEY>(memory + stage * STAGE, heads, begin);
    if constexpr (OF_KEY) {
      if (threadIdx.x < TILE && begin + threadIdx.x < p.queries) {
        QueryStatistics<float> of = statistics_of<float>(p, blockIdx.y * p.repeats + heads.repeat, begin + threadIdx.x);
        of.from *= log2_e;
        statistics[stage * TILE + threadIdx.x] = of;
      }
    }
    copies_begun();
  };
  QueryStatistics<float> of_row[2] = {};
  if constexpr (!OF_KEY) {
#pragma unroll
    for (u32 below = 0; below < 2; below++) {
      if (row + 8 * below < p.queries) of_row[below] = statistics_of<float>(p, blockIdx.y, row + 8 * below);
      of_row[below].from *= log2_e;
    }
  }
  if (tiles > 0) fetch(0);
#pragma unroll 1
  for (u32 tile = 0; tile < tiles; tile++) {
    copies_arrived<0>();
    __syncthreads();
    if (tile + 1 < tiles) fetch(tile + 1);
    const u32 begin = (start + tile % each) * TILE;
    const u16 *other = memory + (tile & 1) * STAGE, *beside = other + PART;
    Sums score[TILE / 8] = {}, along[TILE / 8] = {};
#pragma unroll
    for (u32 part = 0; part < WIDTH / 16; part++) {
#pragma unroll
      for (u32 n = 0; n < TILE / 8; n += 2) {
        RightPart right[2];
        load_right<PITCH>(right, other + n * 8 * PITCH + part * 16, false);
        Cores<T>::add(score[n], own[0][part], right[0]);
        Cores<T>::add(score[n + 1], own[0][part], right[1]);
        load_right<PITCH>(right, beside + n * 8 * PITCH + part * 16, false);
        Cores<T>::add(along[n], own[1][part], right[0]);
        Cores<T>::add(along[n + 1], own[1][part], right[1]);
      }
    }
    const bool is_whole = begin + TILE <= (OF_KEY ? p.queries : p.keys) && first + ROWS <= (OF_KEY ? p.keys : p.queries) &&
                          !(p.causal && (OF_KEY ? begin < first + ROWS : begin + TILE > first));
#pragma unroll
    for (u32 n = 0; n < TILE / 8; n++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        const u32 column = n * 8 + lane % 4 * 2 + i % 2;
        const QueryStatistics<float> of = OF_KEY ? statistics[(tile & 1) * TILE + column] : of_row[i / 2];
        float &share = score[n].of[i], &slope = along[n].of[i];
        share = power_of_two(fused(share, in_twos, -of.from)) * of.factor;
        slope = share * (slope - of.delta);
        if (!is_whole) {
          const u32 mine = row + i / 2 * 8, theirs = begin + column, query = OF_KEY ? theirs : mine, key = OF_KEY ? mine : theirs;
          if (query >= p.queries || key >= p.keys || (p.causal && key > query)) share = slope = 0.0f;
        }
      }
    }
    if constexpr (OF_KEY) add_rounded<T, WIDTH, TILE>(of_value, score, beside);
    add_rounded<T, WIDTH, TILE>(made, along, other);
  }
  copies_arrived<0>();  // Waits for all copies before the block ends.
  if (OF_KEY) heads.repeat = 0;
#pragma unroll
  for (u32 below = 0; below < 2; below++) {
    if (row + 8 * below >= (OF_KEY ? p.keys : p.queries)) continue;
    if constexpr (OF_KEY) {
      Own::store(heads.of_key(), p.of_key, row + 8 * below, made, below, WIDTH, scale);
      Own::store(heads.of_value(), p.of_value, row + 8 * below, of_value, below, WIDTH, 1.0f);
    } else {
      Own::store(heads.of_query(), p.of_query, row + 8 * below, made, below, WIDTH, scale);
    }
  }
}
