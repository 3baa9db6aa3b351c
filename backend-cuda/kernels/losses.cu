// Losses with class indices as targets.
#include "nets.cuh"

struct Losses {
  // The losses and the weights of the targets, either of which may be null; or the gradient.
  void* out;
  void* weights;
  const void* in;
  const void* targets;
  // The weights of the classes; null if all are 1.
  const void* weight;
  i64 class_step, weight_step;
  u64 count;
  i64 ignored;
  // Whether the sum is divided by the sum of weights.
  u32 mean;
  // The strides of output, weights, input, targets and, for a gradient, the class.
  Dims<5> dims;
};

// The loss and the weight of a target; both are 0 if it is ignored.
template <class T>
DEV Pair<Wide<T>> loss_of(const Losses& p, const i64 (&at)[5]) {
  typedef Wide<T> W;
  const i64 target = static_cast<const i64*>(p.targets)[at[3]];
  if (target == p.ignored) return Pair<W>{W(0), W(0)};
  const W weight = p.weight ? Element<T>::widen(static_cast<const T*>(p.weight)[target * p.weight_step]) : W(1);
  // A class of weight 0 has loss 0 for any element.
  if (weight == W(0)) return Pair<W>{W(0), W(0)};
  return Pair<W>{-(Element<T>::widen(static_cast<const T*>(p.in)[at[2] + target * p.class_step]) * weight), weight};
}

template <class T>
DEV void forward(const Losses& p) {
  const u64 number = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (number >= p.count) return;
  i64 at[5];
  p.dims.offsets((u32)number, at);
  const Pair<Wide<T>> loss = loss_of<T>(p, at);
  if (p.out != nullptr) static_cast<T*>(p.out)[at[0]] = Element<T>::narrow(loss.a);
  if (p.weights != nullptr) static_cast<T*>(p.weights)[at[1]] = Element<T>::narrow(loss.b);
}

// A single block reduces all targets, in f64, which is accurate for any number of addends.
template <class T>
DEV void reduced(const Losses& p) {
  const Place place(Sharing{1, p.count, ROW_THREADS, 0});
  Pair<double> own{0, 0};
  for (u64 number = place.lane; number < p.count; number += place.lanes) {
    i64 at[5];
    p.dims.offsets((u32)number, at);
    const Pair<Wide<T>> loss = loss_of<T>(p, at);
    own.a += (double)loss.a;
    own.b += (double)loss.b;
  }
  own = over_row<AddedPairs>(own, place);
  if (threadIdx.x == 0) *static_cast<T*>(p.out) = Element<T>::narrow((Wide<T>)(p.mean ? own.a / own.b : own.a));
}

// One thread per element of the gradient.
template <class T>
DEV void backward(const Losses& p) {
  typedef Wide<T> W;
  const u64 number = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (number >= p.count) return;
  i64 at[5];
  p.dims.offsets((u32)number, at);
  const i64 target = static_cast<const i64*>(p.targets)[at[3]];
  W made = W(0);
  if (target != p.ignored && target == at[4]) {
    made = -(Element<T>::widen(static_cast<const T*>(p.in)[at[2]]) *
             Element<T>::widen(static_cast<const T*>(p.weight)[at[1]]));
  }
  static_cast<T*>(p.out)[at[0]] = Element<T>::narrow(made);
}

#define LOSS(name, signature, host, dtypes) dtypes(ENTRIES_OF_##name, name)
#define ENTRIES_OF_nll_loss(dtype, T, name) KERNEL(name##_##dtype, Losses) { reduced<T>(p); }
#define ENTRIES_OF_nll_loss_forward(dtype, T, name) KERNEL(name##_##dtype, Losses) { forward<T>(p); }
#define ENTRIES_OF_nll_loss_backward(dtype, T, name) KERNEL(name##_##dtype, Losses) { backward<T>(p); }

LOSS(nll_loss, "TTOiS>T", nll_loss, FLOATS)
LOSS(nll_loss_forward, "TTOi>TT", nll_loss_forward, FLOATS)
LOSS(nll_loss_backward, "TTTii>T", nll_loss_backward, FLOATS)
