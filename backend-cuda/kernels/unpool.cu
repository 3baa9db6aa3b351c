// Elements scattered to the indices of their channel that a tensor contains: the gradient of `max_pool`, which adds
// elements with the same index, and `max_unpool`, which stores the last one.
//
// Each output element is computed by one thread, which scans the elements in order, so that sums are bit-identical on every
// run. Indices are usually close to the position of their element: the first launch computes the range of indices of each
// group of neighbouring elements, so that the second launch scans few groups.
#include "nets.cuh"

// Channels per block, threads per channel, and output elements per block and channel; threads per channel in the first
// launch.
constexpr u32 CHANNELS = 32, LANES = 8, PLACES = 128, READERS = 4;

struct Unpool {
  void* out;
  const void* in;
  const void* places;
  // The first and the last index of each group of elements, for some channels.
  void* ranges;
  // The number of elements of an output channel, and of channels of all samples.
  u64 count;
  u32 channels;
  // Groups of `each` elements along the last dimension, whose size is `width`; `segments` groups per row.
  u32 groups, segments, each, width;
  // Whether neighbouring channels are contiguous.
  u32 beside;
  // The stride between the elements of a row, of the input and of the indices.
  i64 step[2];
  // The offsets of channels in the output, the input and the indices; of rows of elements; and of the output's elements.
  Dims<3> lead;
  Dims<2> rows;
  Dims<1> own;
};

struct Range {
  u64 first, last;
};

// A group: its number of elements, and its offsets in the input and the indices of a channel.
struct Group {
  u32 count;
  i64 in, places;
  METHOD Group(const Unpool& p, u32 number, const i64 (&channel)[3]) {
    const u32 row = number / p.segments, begin = number % p.segments * p.each;
    count = p.width - begin < p.each ? p.width - begin : p.each;
    i64 at[2];
    p.rows.offsets(row, at);
    in = channel[1] + at[0] + begin * p.step[0];
    places = channel[2] + at[1] + begin * p.step[1];
  }
};

KERNEL(unpool_ranges, Unpool) {
  SHARED(Range, shared, CHANNELS * READERS);
  const u32 row = p.beside ? threadIdx.x % CHANNELS : threadIdx.x / READERS;
  const u32 lane = p.beside ? threadIdx.x / CHANNELS : threadIdx.x % READERS;
  const u32 channel = blockIdx.x * CHANNELS + row;
  Range own{~0ull, 0};
  if (channel < p.channels) {
    i64 at[3];
    p.lead.offsets(channel, at);
    const Group group(p, blockIdx.y, at);
    for (u32 i = lane; i < group.count; i += READERS) {
      const u64 place = static_cast<const u64*>(p.places)[group.places + i * p.step[1]];
      if (place >= p.count) continue;
      own.first = place < own.first ? place : own.first;
      own.last = place > own.last ? place : own.last;
    }
  }
  shared[threadIdx.x] = own;
  for (u32 half = CHANNELS * READERS / 2; half > 0; half >>= 1) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const Range other = shared[threadIdx.x + half];
    Range& mine = shared[threadIdx.x];
    mine.first = other.first < mine.first ? other.first : mine.first;
    mine.last = other.last > mine.last ? other.last : mine.last;
  }
  if (threadIdx.x == 0) static_cast<Range*>(p.ranges)[(u64)blockIdx.x * p.groups + blockIdx.y] = shared[0];
}

template <class T, bool SUM>
DEV void unpool(const Unpool& p) {
  typedef Wide<T> W;
  // Padded by one element, so that channels start in different banks.
  constexpr u32 PITCH = PLACES + 1;
  SHARED(W, made, CHANNELS * PITCH);
  const u32 row = p.beside ? threadIdx.x % CHANNELS : threadIdx.x / LANES;
  const u32 lane = p.beside ? threadIdx.x / CHANNELS : threadIdx.x % LANES;
  const u32 channel = blockIdx.x * CHANNELS + row;
  const u64 begin = (u64)blockIdx.y * PLACES;
  W* own = made + row * PITCH;
  for (u32 i = lane; i < PLACES; i += LANES) own[i] = W(0);
  if (channel < p.channels) {
    i64 at[3];
    p.lead.offsets(channel, at);
    const Range* ranges = static_cast<const Range*>(p.ranges) + (u64)blockIdx.x * p.groups;
#pragma unroll 1
    for (u32 number = 0; number < p.groups; number++) {
      if (ranges[number].first >= begin + PLACES || ranges[number].last < begin) continue;
      const Group group(p, number, at);
      const u64* places = static_cast<const u64*>(p.places) + group.places;
      const T* in = static_cast<const T*>(p.in) + group.in;
#pragma unroll 4
      for (u32 i = 0; i < group.count; i++) {
        const u64 place = places[i * p.step[1]] - begin;
        if (place >= PLACES || place % LANES != lane) continue;
        const W value = Element<T>::widen(in[i * p.step[0]]);
        own[place] = SUM ? own[place] + value : value;
      }
    }
  }
  __syncthreads();
  // Coalesced writes: neighbouring threads write neighbouring elements.
  constexpr u32 THREADS = CHANNELS * LANES;
  for (u32 i = threadIdx.x; i < CHANNELS * PLACES; i += THREADS) {
    const u32 of = p.beside ? i % CHANNELS : i / PLACES, place = p.beside ? i / CHANNELS : i % PLACES;
    const u32 channel = blockIdx.x * CHANNELS + of;
    if (channel >= p.channels || begin + place >= p.count) continue;
    i64 at[3], to[1];
    p.lead.offsets(channel, at);
    p.own.offsets((u32)(begin + place), to);
    static_cast<T*>(p.out)[at[0] + to[0]] = Element<T>::narrow(made[of * PITCH + place]);
  }
}

#define UNPOOL(name, signature, host, dtypes, sum) dtypes(UNPOOL_ENTRY_##sum, name)
#define UNPOOL_ENTRY_true(dtype, T, name) KERNEL(name##_##dtype, Unpool) { unpool<T, true>(p); }
#define UNPOOL_ENTRY_false(dtype, T, name) KERNEL(name##_##dtype, Unpool) { unpool<T, false>(p); }

UNPOOL(max_pool_backward, "TTI>T", unpool, FLOATS, true)
UNPOOL(max_unpool, "TTI>T", unpool, FLOATS, false)
