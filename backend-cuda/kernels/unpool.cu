// Elements that go to places of their channel which a tensor names: the gradient of `max_pool`, where those of one place
// are added up, and `max_unpool`, where the last one stays.
#include "nets.cuh"

// Threads of a block, which has one channel.
constexpr u32 CHANNEL_THREADS = 64;

struct Unpool {
  void* out;
  // Of sums in a type of fewer digits than they are computed in: room for all of them.
  void* sums;
  const void* in;
  const void* places;
  // Elements of a channel of the input and of the output.
  u64 elements, count;
  // Where the channels begin, and of the elements and the output's elements within one.
  Dims<3> channels;
  Dims<2> inside;
  Dims<1> own;
};

// Some elements at once: of those with one place, the first thread has them all, in their order.
template <class T, bool SUM>
DEV void unpool(const Unpool& p) {
  typedef Wide<T> W;
  SHARED(W, values, CHANNEL_THREADS);
  SHARED(u64, targets, CHANNEL_THREADS);
  i64 at[3];
  p.channels.offsets(blockIdx.x, at);
  T* out = static_cast<T*>(p.out) + at[0];
  W* sums = static_cast<W*>(p.sums) + blockIdx.x * p.count;
  constexpr bool apart = SUM && sizeof(W) > sizeof(T);
  for (u64 i = threadIdx.x; i < p.count; i += CHANNEL_THREADS) {
    i64 to[1];
    p.own.offsets((u32)i, to);
    if (apart) sums[i] = W(0);
    else out[to[0]] = Element<T>::narrow(W(0));
  }
  for (u64 begin = 0; begin < p.elements; begin += CHANNEL_THREADS) {
    const u64 element = begin + threadIdx.x;
    const u32 some = p.elements - begin < CHANNEL_THREADS ? (u32)(p.elements - begin) : CHANNEL_THREADS;
    u64 target = 0;
    __syncthreads();
    if (threadIdx.x < some) {
      i64 from[2];
      p.inside.offsets((u32)element, from);
      target = static_cast<const u64*>(p.places)[at[2] + from[1]];
      targets[threadIdx.x] = target;
      values[threadIdx.x] = Element<T>::widen(static_cast<const T*>(p.in)[at[1] + from[0]]);
    }
    __syncthreads();
    bool first = threadIdx.x < some && target < p.count;
    for (u32 i = 0; i < threadIdx.x && i < some; i++) first = first && targets[i] != target;
    if (!first) continue;
    i64 to[1];
    p.own.offsets((u32)target, to);
    W value = apart ? sums[target] : Element<T>::widen(out[to[0]]);
    for (u32 i = threadIdx.x; i < some; i++) {
      if (targets[i] == target) value = SUM ? value + values[i] : values[i];
    }
    if (apart) sums[target] = value;
    else out[to[0]] = Element<T>::narrow(value);
  }
  if (!apart) return;
  __syncthreads();
  for (u64 i = threadIdx.x; i < p.count; i += CHANNEL_THREADS) {
    i64 to[1];
    p.own.offsets((u32)i, to);
    out[to[0]] = Element<T>::narrow(sums[i]);
  }
}

#define UNPOOL(name, signature, host, dtypes, sum) dtypes(UNPOOL_ENTRY_##sum, name)
#define UNPOOL_ENTRY_true(dtype, T, name) KERNEL(name##_##dtype, Unpool) { unpool<T, true>(p); }
#define UNPOOL_ENTRY_false(dtype, T, name) KERNEL(name##_##dtype, Unpool) { unpool<T, false>(p); }

UNPOOL(max_pool_backward, "TTI>T", max_pool_backward, FLOATS, true)
UNPOOL(max_unpool, "TTI>T", max_unpool, FLOATS, false)
