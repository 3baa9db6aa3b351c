// Elements that go to places of their channel which a tensor names: the gradient of `max_pool`, where those of one place
// are added up, and `max_unpool`, where the last one stays.
//
// Each place is made by one thread, which looks at the elements in their order, so that sums have the same bits on every run. Where
// elements go is seldom far from where they lie: the first launch finds the first and the last place of some neighbouring elements, so
// that the second looks at few of them.
#include "nets.cuh"

// Channels that a block has, threads for each, and places that it makes of each; threads of a channel in the first launch.
constexpr u32 CHANNELS = 32, LANES = 8, PLACES = 128, READERS = 4;

struct Unpool {
  void* out;
  const void* in;
  const void* places;
  // The first and the last place of each group of elements, of some channels.
  void* ranges;
  // Elements of a channel of the output, and channels of all samples.
  u64 count;
  u32 channels;
  // Groups of `each` elements along the last dimension, which has `width`; `segments` of them are one row.
  u32 groups, segments, each, width;
  // Whether neighbouring channels lie side by side.
  u32 beside;
  // From an element of a row to the next: of the input and of the places.
  i64 step[2];
  // Where channels begin: of the output, the input, and the places; rows of elements; the output's elements.
  Dims<3> lead;
  Dims<2> rows;
  Dims<1> own;
};

struct Range {
  u64 first, last;
};

// A group: how many elements it has, and where it begins in the input and the places of a channel.
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
  // One more, so that the channels begin in different banks.
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
  // Neighbouring threads write neighbours.
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
