// Losses of differences between inputs and targets: element-wise, or reduced by sum or mean.
#include "elementwise.cuh"
#include "nets.cuh"

// The loss of an absolute difference: `factor * d^2` below `corner`, linear above.
template <class R>
DEV R loss_of(R size, R corner, R factor, R less) { return size < corner ? size * size * factor : size - less; }
// The derivative of the loss, with `factor = 1 / (2 corner)`. Products with 0, so that NaN propagates.
template <class R>
DEV R slope_of(R x, R corner) {
  if (magnitude_(x) < corner) return x / corner;
  return x > R(0) ? R(1) : x < R(0) ? R(-1) : x * R(0);
}

struct Distances {
  void* out;
  const void* in;
  const void* target;
  // The partial sum of each block, if there are several blocks.
  void* parts;
  u64 scalar[3];
  u64 count;
  // The divisor of the sum.
  u64 divisor;
  u32 splits;
  // Whether both inputs are contiguous in the same order and aligned for packs.
  u32 packed;
  Dims<2> dims;
};

template <class T>
DEV void store(const Distances& p, Wide<T> sum) {
  *static_cast<T*>(p.out) = Element<T>::narrow(sum / (Wide<T>)p.divisor);
}

template <class F, class T>
DEV void reduced(const Distances& p) {
  typedef Wide<T> W;
  const F loss(p.scalar);
  const u64 own = (u64)blockIdx.x * ROW_THREADS + threadIdx.x, step = (u64)p.splits * ROW_THREADS;
  u64 at = own;
  constexpr int V = Piece<T>::count;
  W sums[V] = {};
  if (p.packed) {
    const Piece<T>*in = static_cast<const Piece<T>*>(p.in), *target = static_cast<const Piece<T>*>(p.target);
    for (; at < p.count / V; at += step) {
      const Piece<T> a = in[at], b = target[at];
#pragma unroll
      for (int i = 0; i < V; i++) sums[i] += loss(Element<T>::widen(a.at[i]), Element<T>::widen(b.at[i]));
    }
    at = p.count / V * V + own;
  }
#pragma unroll 1
  for (; at < p.count; at += step) {
    i64 from[2];
    p.dims.offsets((u32)at, from);
    sums[0] += loss(Element<T>::widen(static_cast<const T*>(p.in)[from[0]]),
                    Element<T>::widen(static_cast<const T*>(p.target)[from[1]]));
  }
#pragma unroll
  for (int half = V / 2; half > 0; half >>= 1) {
#pragma unroll
    for (int i = 0; i < half; i++) sums[i] += sums[i + half];
  }
  const W whole = over_row<Added>(sums[0], Place(Sharing{1, p.count, ROW_THREADS, 0}));
  if (threadIdx.x > 0) return;
  if (p.splits == 1) store<T>(p, whole);
  else static_cast<W*>(p.parts)[blockIdx.x] = whole;
}

// The second launch, a single block that adds the partial sums.
template <class T>
DEV void finish(const Distances& p) {
  Wide<T> sum = Wide<T>(0);
  for (u32 part = threadIdx.x; part < p.splits; part += ROW_THREADS) sum += static_cast<const Wide<T>*>(p.parts)[part];
  const Wide<T> whole = over_row<Added>(sum, Place(Sharing{1, p.splits, ROW_THREADS, 0}));
  if (threadIdx.x == 0) store<T>(p, whole);
}

PLAIN_BINARY(distance, "", reduced, FLOATS, loss_of(magnitude_(a - b), s0, s1, s2))
REGISTER(mse_loss, "TTS>T", mse, FLOATS)
REGISTER(l1_loss, "TTS>T", l1, FLOATS)
REGISTER(smooth_l1_loss, "TTsS>T", smooth, FLOATS)

#define REDUCED_ENTRIES(dtype, T, name)                                                      \
  KERNEL(name##_##dtype##_reduce, Distances) { reduced<name##_function<Wide<T>>, T>(p); }    \
  KERNEL(name##_##dtype##_finish, Distances) { finish<T>(p); }
FLOATS(REDUCED_ENTRIES, distance)

// The gradient of `smooth_l1_loss`; its factor is `s1`.
PLAIN_TERNARY(smooth_l1_loss_backward, "TTTsS>T", smooth_backward, FLOATS, a * s1 * slope_of(b - c, s0))
