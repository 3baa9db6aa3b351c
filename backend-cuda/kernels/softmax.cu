// Softmax and its logarithm along a dimension: the largest element, the sum of what e is to the distances from it, and
// the results.
#include "nets.cuh"

struct Softmax {
  void* out;
  const void* in;
  Sharing sharing;
  // Where rows begin in the output and the input, and the steps along them.
  Dims<2> rows;
  i64 out_step, in_step;
};

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

// The same of rows that are kept: each is read once.
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
    const W power = exp_(x);
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
