// Softmax and log_softmax along a dimension: the maximum, the sum of exp(x - max), and the results; and their gradients:
// the sum of each row, and the results.
#include "nets.cuh"

struct Softmax {
  void* out;
  const void* in;
  Sharing sharing;
  // The offsets of rows in the output and the input, and the strides along them.
  Dims<2> rows;
  i64 out_step, in_step;
};

// Not inlined in f64, where it is long.
DEV float power_of(float x) { return exp_(x); }
CALLED double power_of(double x) { return exp_(x); }

template <class T, bool LOG>
DEV void softmax(const Softmax& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[2] = {0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  T* out = static_cast<T*>(p.out) + at[0];
  const T* in = static_cast<const T*>(p.in) + at[1];
  const u64 first = place.has_row ? place.lane : p.sharing.terms;
  W largest = -Infinite<W>::value();
  for (u64 k = first; k < p.sharing.terms; k += place.lanes) largest = larger(largest, Element<T>::widen(in[k * p.in_step]));
  largest = over_row<Largest>(largest, place);
  W sum = W(0);
  for (u64 k = first; k < p.sharing.terms; k += place.lanes) sum += exp_(Element<T>::widen(in[k * p.in_step]) - largest);
  sum = over_row<Added>(sum, place);
  const W factor = LOG ? log_(sum) : W(1) / sum;
  for (u64 k = first; k < p.sharing.terms; k += place.lanes) {
    const W x = Element<T>::widen(in[k * p.in_step]) - largest;
    out[k * p.out_step] = Element<T>::narrow(LOG ? x - factor : exp_(x) * factor);
  }
}

// The same for rows cached in registers: each is read once.
template <class T, bool LOG>
DEV void softmax_kept(const Softmax& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[2] = {0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  Kept<T> row(static_cast<const T*>(p.in) + at[1], place, p.sharing.terms);
  W largest = -Infinite<W>::value();
  row.each([&](W& x) { largest = larger(largest, x); });
  largest = over_row<Largest>(largest, place);
  W sum = W(0);
  row.each([&](W& x) {
    x -= largest;
    const W power = power_of(x);
    sum += power;
    if (!LOG) x = power;
  });
  sum = over_row<Added>(sum, place);
  const W factor = LOG ? log_(sum) : W(1) / sum;
  row.write(static_cast<T*>(p.out) + at[0], [&](W* x, u32) {
#pragma unroll
    for (int k = 0; k < Piece<T>::count; k++) x[k] = LOG ? x[k] - factor : x[k] * factor;
  });
}

#define SOFTMAX(name, signature, host, dtypes, log) dtypes(SOFTMAX_ENTRY_##log, name)
#define SOFTMAX_ENTRIES(dtype, T, name, log)                            \
  KERNEL(name##_##dtype, Softmax) { softmax<T, log>(p); }               \
  KERNEL(name##_##dtype##_kept, Softmax) { softmax_kept<T, log>(p); }
#define SOFTMAX_ENTRY_true(dtype, T, name) SOFTMAX_ENTRIES(dtype, T, name, true)
#define SOFTMAX_ENTRY_false(dtype, T, name) SOFTMAX_ENTRIES(dtype, T, name, false)

SOFTMAX(softmax, "Ti>T", softmax, FLOATS, false)
SOFTMAX(log_softmax, "Ti>T", softmax, FLOATS, true)

struct SoftmaxGradient {
  void* out;
  const void* grad;
  const void* made;
  Sharing sharing;
  // The offsets of rows in the output, the gradient and the softmax result, and the strides along them.
  Dims<3> rows;
  i64 step[3];
  // Whether the result is that of log_softmax.
  u64 logs;
};

template <class T>
DEV void gradient(const SoftmaxGradient& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[3] = {0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  T* out = static_cast<T*>(p.out) + at[0];
  const T* grad = static_cast<const T*>(p.grad) + at[1];
  const T* made = static_cast<const T*>(p.made) + at[2];
  const u64 first = place.has_row ? place.lane : p.sharing.terms;
  W sum = W(0);
#pragma unroll 4
  for (u64 k = first; k < p.sharing.terms; k += place.lanes) {
    const W own = Element<T>::widen(grad[k * p.step[1]]), share = Element<T>::widen(made[k * p.step[2]]);
    sum += p.logs ? own : own * share;
  }
  sum = over_row<Added>(sum, place);
#pragma unroll 1
  for (u64 k = first; k < p.sharing.terms; k += place.lanes) {
    const W own = Element<T>::widen(grad[k * p.step[1]]), share = Element<T>::widen(made[k * p.step[2]]);
    // If the gradients of a row of log_softmax sum to 0, they are returned unchanged for any elements, so that an ignored
    // NaN row has gradient 0.
    const W part = p.logs ? sum == W(0) ? W(0) : power_of(share) * sum : share * sum;
    out[k * p.step[0]] = Element<T>::narrow((p.logs ? own : own * share) - part);
  }
}

template <class T>
DEV void gradient_kept(const SoftmaxGradient& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[3] = {0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  Kept<T> grad(static_cast<const T*>(p.grad) + at[1], place, p.sharing.terms);
  Kept<T> shares(static_cast<const T*>(p.made) + at[2], place, p.sharing.terms);
  if (p.logs) shares.each([&](W& x) { x = power_of(x); });
  else grad.each_with(shares, [&](W& own, W share) { own *= share; });
  W sum = W(0);
  grad.each([&](W& own) { sum += own; });
  sum = over_row<Added>(sum, place);
  // As in gradient.
  const bool passed = p.logs && sum == W(0);
  grad.each_with(shares, [&](W& own, W share) { own -= passed ? W(0) : share * sum; });
  grad.write(static_cast<T*>(p.out) + at[0], [](W*, u32) {});
}

#define SLOPE(name, signature, host, dtypes) dtypes(SLOPE_ENTRIES, name)
// Two rows in registers: limited by the registers of the maximum number of threads per block.
#define SLOPE_ENTRIES(dtype, T, name)                         \
  KERNEL(name##_##dtype, SoftmaxGradient) { gradient<T>(p); } \
  BOUNDED_KERNEL(name##_##dtype##_kept, SoftmaxGradient, MOST_ROW_THREADS, 1) { gradient_kept<T>(p); }

SLOPE(softmax_backward, "TTi>T", softmax_backward, FLOATS)
REGISTER(log_softmax_backward, "TTi>T", softmax_backward, FLOATS)
