// Ordering of elements: conversion to unsigned sort keys, a stable sort of the keys, and binary searches.
//
// Short lines are sorted by rank: each element counts the elements that precede it. For a small k of a line (top-k), the
// k-th element is found by a radix select from the highest digit, and the elements up to it are sorted by rank. All other
// sorts are LSD radix sorts over the digits of the keys, then of the line number. A pass computes the histogram of each
// tile, scans the histograms, and moves the elements to positions that depend on the counts alone.
#include "elementwise.cuh"

// NaN is the greatest value, and -0 equals 0.
template <class T>
DEV u64 key_of(T x) {
  if constexpr (Kind<T>::has_sign) return (u64)((i64)x + ((i64)1 << (sizeof(T) * 8 - 1)));
  else return (u64)x;
}
DEV u64 key_of(i64 x) { return (u64)x ^ (u64)1 << 63; }
DEV u64 key_of(float x) {
  if (is_nan(x)) return 0xffffffffu;
  const u32 bits = bits_of(x + 0.0f);
  return bits >> 31 == 0 ? bits | 0x80000000u : ~bits;
}
DEV u64 key_of(double x) {
  if (is_nan(x)) return ~(u64)0;
  const u64 bits = bits_of_double(x + 0.0);
  return bits >> 63 == 0 ? bits | (u64)1 << 63 : ~bits;
}

// The dimensions are those of the lines, then along the lines.
struct Keys {
  Operand in;
  u64* keys;
  u32* order;
  u64 flip;
  u64 count;
  Dims<1> dims;
};
template <class T>
DEV void keys(const Keys& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[1];
  p.dims.offsets((u32)at, offset);
  p.keys[at] = key_of(read<T>(p.in, offset[0])) ^ p.flip;
  p.order[at] = (u32)at;
}
#define KEYS(dtype, T, name) KERNEL(name##_##dtype, Keys) { keys<T>(p); }
ALL(KEYS, keys)

// Consecutive elements: their keys, and their numbers. `length` is the length of a line; if it is 0 a pass sorts by digits
// of the keys, otherwise by digits of the line number.
struct Pass {
  const u64* keys;
  const u32* order;
  u64* keys_out;
  u32* order_out;
  u64* counts;
  u64 count;
  u32 length;
  u32 shift;
  u32 tiles;
};
KERNEL(rank_u64, Pass) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u32 own = (u32)(at % p.length);
  const u64 first = at - own, key = p.keys[at];
  u32 before = 0;
  for (u32 i = 0; i < p.length; i++) {
    const u64 other = p.keys[first + i];
    before += other < key || (other == key && i < own);
  }
  p.keys_out[first + before] = key;
  p.order_out[first + before] = p.order[at];
}

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
// Elements per thread, and per block.
constexpr u32 EACH = 8;
constexpr u32 TILE = THREADS * EACH;
// One thread per digit value.
constexpr u32 DIGIT_BITS = 8;
constexpr u32 DIGITS = THREADS;

DEV u32 digit_of(const Pass& p, u64 key, u32 number) {
  return (u32)((p.length == 0 ? key : number / p.length) >> p.shift) & (DIGITS - 1);
}
// The exclusive prefix sum of a value over the threads of the block, and the total. `shared` has THREADS + GROUPS elements,
// which only other calls of this function use without a barrier.
constexpr u32 GROUPS = 16;
template <class T>
DEV T before_in_block(T own, T* shared, T& all) {
  T* totals = shared + THREADS;
  shared[threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.x < GROUPS) {
    T sum = 0;
    for (u32 i = 0; i < THREADS / GROUPS; i++) {
      const T here = shared[threadIdx.x * (THREADS / GROUPS) + i];
      shared[threadIdx.x * (THREADS / GROUPS) + i] = sum;
      sum += here;
    }
    totals[threadIdx.x] = sum;
  }
  __syncthreads();
  T before = shared[threadIdx.x];
  all = 0;
  for (u32 i = 0; i < GROUPS; i++) {
    if (i < threadIdx.x / (THREADS / GROUPS)) before += totals[i];
    all += totals[i];
  }
  return before;
}

// Writes the histogram of each tile, by digit and then by tile; one element after each digit's counts is left for the
// total.
KERNEL(digits_u64, Pass) {
  SHARED(u32, counts, DIGITS);
  counts[threadIdx.x] = 0;
  __syncthreads();
  const u64 first = (u64)blockIdx.x * TILE + threadIdx.x;
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u64 at = first + i * THREADS;
    if (at < p.count) {
      atomicAdd(&counts[p.length == 0 ? digit_of(p, p.keys[at], 0) : digit_of(p, 0, p.order[at])], 1u);
    }
  }
  __syncthreads();
  p.counts[(u64)threadIdx.x * (p.tiles + 1) + blockIdx.x] = counts[threadIdx.x];
}
// The digits of a thread's elements, and the lanes of its warp with the same digit (match-any); DIGITS if there is no
// element.
struct WarpDigits {
  u16 own[EACH];
#ifdef KEYWAY_SHIM
  // One exchange for all votes: votes are slow in the stand-in.
  u16 all[32][EACH];
  METHOD void exchange() { shim_gather(own, sizeof(own), all); }
  METHOD u32 same(u32 i) const {
    u32 lanes = 0;
    for (u32 lane = 0; lane < 32; lane++) lanes |= (u32)(all[lane][i] == own[i]) << lane;
    return lanes;
  }
#else
  METHOD void exchange() {}
  METHOD u32 same(u32 i) const {
    u32 lanes = ~0u;
#pragma unroll
    for (u32 bit = 0; bit <= DIGIT_BITS; bit++) {
      const bool is_set = own[i] >> bit & 1;
      const u32 set = __ballot_sync(~0u, is_set);
      lanes &= is_set ? set : ~set;
    }
    return lanes;
  }
#endif
};
// One pass after the scan of the counts. Each warp has consecutive elements, 32 at a time, whose threads find the lanes
// with the same digit by votes. The tile is sorted in shared memory before it is written, so that writes are coalesced.
KERNEL(move_u64, Pass) {
  SHARED(u32, counts, WARPS * DIGITS);
  SHARED(u32, starts, DIGITS);
  SHARED(u32, sums, THREADS + GROUPS);
  SHARED(u64, keys, TILE);
  SHARED(u32, order, TILE);
  const u32 lane = threadIdx.x % 32;
  u32* own_counts = counts + threadIdx.x / 32 * DIGITS;
  for (u32 warp = 0; warp < WARPS; warp++) counts[warp * DIGITS + threadIdx.x] = 0;
  const u64* row = p.counts + (u64)threadIdx.x * (p.tiles + 1);
  u32 all;
  const u32 start = before_in_block((u32)row[p.tiles], sums, all) + (u32)row[blockIdx.x];

  const u64 tile = (u64)blockIdx.x * TILE;
  const u64* tile_keys = p.keys + tile;
  const u32* tile_order = p.order + tile;
  const u32 count = p.count - tile < TILE ? (u32)(p.count - tile) : TILE;
  const u32 first = threadIdx.x / 32 * (32 * EACH) + lane;
  u64 key[EACH];
  WarpDigits digits;
  // The number of preceding elements of the warp with the same digit.
  u16 rank[EACH];
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u32 at = first + i * 32;
    key[i] = at < count ? tile_keys[at] : 0;
    digits.own[i] = at < count ? (u16)digit_of(p, key[i], p.length == 0 ? 0 : tile_order[at]) : (u16)DIGITS;
  }
  digits.exchange();
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u32 same = digits.same(i), before = __popc(same & ((1u << lane) - 1));
    u32 counted = 0;
    if (before == 0 && first + i * 32 < count) counted = atomicAdd(&own_counts[digits.own[i]], (u32)__popc(same));
    rank[i] = (u16)(__shfl_sync(~0u, counted, __ffs((int)same) - 1) + before);
  }
  __syncthreads();
  u32 sum = 0;
#pragma unroll
  for (u32 warp = 0; warp < WARPS; warp++) {
    const u32 here = counts[warp * DIGITS + threadIdx.x];
    counts[warp * DIGITS + threadIdx.x] = sum;
    sum += here;
  }
  const u32 before = before_in_block(sum, sums, all);
#pragma unroll
  for (u32 warp = 0; warp < WARPS; warp++) counts[warp * DIGITS + threadIdx.x] += before;
  starts[threadIdx.x] = start - before;
  __syncthreads();
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    if (first + i * 32 < count) {
      const u32 at = own_counts[digits.own[i]] + rank[i];
      keys[at] = key[i];
      order[at] = tile_order[first + i * 32];
    }
  }
  __syncthreads();
#pragma unroll 2
  for (u32 at = threadIdx.x; at < count; at += THREADS) {
    const u32 to = starts[digit_of(p, keys[at], order[at])] + at;
    p.keys_out[to] = keys[at];
    p.order_out[to] = order[at];
  }
}

// Replaces the counts by their exclusive prefix sums, followed by the total. One block per row.
struct Counts {
  u64* counts;
  u64 count;
};
constexpr u32 EACH_COUNTS = 16;
KERNEL(add_up_u64, Counts) {
  SHARED(u64, sums, THREADS + GROUPS);
  u64* counts = p.counts + blockIdx.x * (p.count + 1);
  u64 carried = 0;
  for (u64 base = 0; base < p.count; base += THREADS * EACH_COUNTS) {
    const u64 first = base + threadIdx.x * EACH_COUNTS;
    u64 own = 0;
    for (u32 i = 0; i < EACH_COUNTS && first + i < p.count; i++) own += counts[first + i];
    u64 all;
    u64 before = carried + before_in_block(own, sums, all);
    carried += all;
    for (u32 i = 0; i < EACH_COUNTS && first + i < p.count; i++) {
      const u64 here = counts[first + i];
      counts[first + i] = before;
      before += here;
    }
  }
  if (threadIdx.x == 0) counts[p.count] = carried;
}

// Selects the first `k` of each line, or of each part of a line, in the order of keys, then of positions; all elements of a
// part with fewer than `k`. The numbers of bits of keys and of positions in a part are whole digits.
struct Select {
  const u64* keys;
  const u32* order;
  u64* keys_out;
  u32* order_out;
  u32 length;
  u32 part;
  u32 parts;
  u32 k;
  u32 bits;
  u32 place_bits;
};
constexpr u32 SELECTED = 512;
// Elements that a thread loads before it uses the first.
constexpr u32 AHEAD = 4;

KERNEL(select_u64, Select) {
  SHARED(u32, counts, DIGITS);
  SHARED(u32, sums, THREADS + GROUPS);
  SHARED(u32, found, 4);
  SHARED(u64, kept, SELECTED);
  SHARED(u32, places, SELECTED);
  const u64 line = blockIdx.x / p.parts;
  const u32 part = blockIdx.x % p.parts, last = p.length - (p.parts - 1) * p.part;
  const u32 length = part + 1 < p.parts ? p.part : last, k = length < p.k ? length : p.k;
  const u64 first = line * p.length + part * p.part;
  const u64 to = line * ((u64)(p.parts - 1) * p.k + (last < p.k ? last : p.k)) + (u64)part * p.k;

  // The known digits of the k-th element, and the number of elements to select among those with the same digits.
  u64 key = 0, key_mask = 0;
  u32 place = 0, place_mask = 0, rest = k;
  if (threadIdx.x == 0) found[3] = 0;
  for (u32 left = p.bits + p.place_bits; left > 0; left -= DIGIT_BITS) {
    const bool is_key = left > p.place_bits;
    const u32 shift = (is_key ? left - p.place_bits : left) - DIGIT_BITS;
    counts[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll 1
    for (u32 base = threadIdx.x; base < length; base += AHEAD * THREADS) {
      u64 own[AHEAD];
#pragma unroll
      for (u32 i = 0; i < AHEAD; i++) own[i] = base + i * THREADS < length ? p.keys[first + base + i * THREADS] : 0;
#pragma unroll
      for (u32 i = 0; i < AHEAD; i++) {
        const u32 at = base + i * THREADS;
        if (at < length && (own[i] & key_mask) == key && (at & place_mask) == place) {
          atomicAdd(&counts[(u32)((is_key ? own[i] : at) >> shift) & (DIGITS - 1)], 1u);
        }
      }
    }
    __syncthreads();
    const u32 here = counts[threadIdx.x];
    u32 all;
    const u32 before = before_in_block(here, sums, all);
    if (before < rest && rest <= before + here) {
      found[0] = threadIdx.x;
      found[1] = before;
      found[2] = here;
    }
    __syncthreads();
    if (is_key) {
      key |= (u64)found[0] << shift;
      key_mask |= (u64)(DIGITS - 1) << shift;
    } else {
      place |= found[0] << shift;
      place_mask |= (DIGITS - 1) << shift;
    }
    rest -= found[1];
    if (rest == found[2]) break;
  }

#pragma unroll 1
  for (u32 at = threadIdx.x; at < length; at += THREADS) {
    const u64 own = p.keys[first + at], known = own & key_mask;
    if (known < key || (known == key && (at & place_mask) <= place)) {
      // In any order: they are sorted by rank.
      const u32 slot = atomicAdd(&found[3], 1u);
      kept[slot] = own;
      places[slot] = at;
    }
  }
  __syncthreads();
#pragma unroll 1
  for (u32 i = threadIdx.x; i < k; i += THREADS) {
    const u64 own = kept[i];
    const u32 at = places[i];
    u32 before = 0;
    for (u32 other = 0; other < k; other++) {
      before += kept[other] < own || (kept[other] == own && places[other] < at);
    }
    p.keys_out[to + before] = own;
    p.order_out[to + before] = p.order[first + at];
  }
}

// Gathers elements in sorted order, with their positions along the line: the dimensions are those of the outputs, with the
// strides of both and of the rank.
struct Ranked {
  void* values;
  i64* places;
  const u32* order;
  Operand in;
  u64 length;
  u64 count;
  Dims<3> dims;
  Dims<1> elements;
};
template <class T>
DEV void ranked(const Ranked& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[3], from[1];
  p.dims.offsets((u32)at, offset);
  const u32 number = p.order[offset[2]];
  p.elements.offsets(number, from);
  static_cast<T*>(p.values)[offset[0]] = read<T>(p.in, from[0]);
  p.places[offset[1]] = number % p.length;
}
#define RANKED(bits, T, name) KERNEL(name##_##bits, Ranked) { ranked<T>(p); }
BITS(RANKED, ranked)
REGISTER(sort, "Tibb>TT", sort, ALL)
REGISTER(topk, "Tiibb>TT", topk, ALL)

// The number of elements of a sorted line that precede each value.
struct Search {
  i64* out;
  Operand sorted;
  Operand values;
  u64 length;
  // The number of values that are searched in one line.
  u64 width;
  u64 right;
  u64 first;
  u64 count;
};
template <class T>
DEV void search(const Search& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  const u64 line = (p.first + at) / p.width * p.length;
  const u64 value = key_of(read<T>(p.values, (i64)(p.first + at)));
  u64 from = 0;
  for (u64 end = p.length; from < end;) {
    const u64 middle = from + (end - from) / 2, key = key_of(read<T>(p.sorted, (i64)(line + middle)));
    if (p.right ? key <= value : key < value) from = middle + 1;
    else end = middle;
  }
  p.out[p.first + at] = (i64)from;
}
#define SEARCH(dtype, T, name) KERNEL(name##_##dtype, Search) { search<T>(p); }
NUMBERS(SEARCH, searchsorted)
REGISTER(searchsorted, "TTb>T", searchsorted, NUMBERS)
