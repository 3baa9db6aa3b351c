// Attention without a mask by tensor cores, of heads as wide as the kernel whose rows lie in pieces: queries, scores and results
// stay in registers, and the next keys and values are fetched while the last are used. Weights are rounded to the operands' dtype
// before they are multiplied, and their sums are not, as in FlashAttention-2 (Dao, 2023).
#pragma once
#include "attention_cores.cuh"

// 2 to the x.
DEV float power_of_two(float x) {
#ifdef KEYWAY_SHIM
  return exp2f(x);
#else
  float made;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(x));
  return made;
#endif
}

// A warp has `TALL` times 16 queries, a block of four warps one head; `KEYS` keys come at once.
template <class T, u32 WIDTH, u32 TALL, u32 KEYS>
DEV void attend_plain(const Attention& p) {
  typedef Rows<T, WIDTH> Own;
  constexpr u32 OF_WARP = 16 * TALL, QUERIES = 4 * OF_WARP, PITCH = Own::PITCH, TILE = KEYS * PITCH;
  static_assert(QUERIES <= 4 * KEYS, "queries lie where tiles come later");
  // Two tiles of keys, then two of values.
  SHARED(u16, tiles, 4 * TILE);
  const Heads<T> heads(p, blockIdx.y / p.repeats, blockIdx.y % p.repeats);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Of causal ones the blocks with most to do are begun first.
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
    // Tiles that end behind the last key, or behind what the warp's first query looks at.
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
        // What is no number makes its weight and so the row's sum none; it need not be the largest.
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
  copies_arrived<0>();  // The end.
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
