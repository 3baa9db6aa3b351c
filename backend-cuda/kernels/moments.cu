// Reductions of floats that go through their terms twice, or whose terms are powers: `logsumexp`, `var`, `std`, `norm`.
#include "nets.cuh"

struct Moments {
  void* out;
  const void* in;
  // Of `norm`: the parts of each row, where several blocks share it.
  void* parts;
  Sharing sharing;
  // What the sum of squares is divided by, or the exponent of the norm, in f64.
  u64 number;
  u32 kind, splits;
  Dims<2> rows;
  Dims<1> terms;
};

template <class T>
struct Row {
  const T* in;
  T* out;
  u64 first;
  const Moments& p;
  METHOD Row(const Moments& p, const Place& place) : p(p) {
    i64 at[2] = {0, 0};
    if (place.has_row) p.rows.offsets((u32)place.row, at);
    out = static_cast<T*>(p.out) + at[0];
    in = static_cast<const T*>(p.in) + at[1];
    first = place.has_row ? place.lane : p.sharing.terms;
  }
  METHOD Wide<T> at(u64 term) const {
    i64 from[1];
    p.terms.offsets((u32)term, from);
    return Element<T>::widen(in[from[0]]);
  }
};

template <class T>
DEV void logsumexp(const Moments& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  const Row<T> row(p, place);
  W largest = -Infinite<W>::value();
  for (u64 k = row.first; k < p.sharing.terms; k += place.lanes) largest = larger(largest, row.at(k));
  largest = over_row<Largest>(largest, place);
  // An infinite largest element would make NaN of itself.
  if (is_infinite(largest)) largest = W(0);
  W sum = W(0);
  for (u64 k = row.first; k < p.sharing.terms; k += place.lanes) sum += exp_(row.at(k) - largest);
  sum = over_row<Added>(sum, place);
  if (place.has_row && place.lane == 0) *row.out = Element<T>::narrow(log_(sum) + largest);
}

// The mean is that of the distances from the first element, so that equal numbers have no variance.
template <class T, bool ROOT>
DEV void variance(const Moments& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  const Row<T> row(p, place);
  const W begin = place.has_row && p.sharing.terms > 0 ? row.at(0) : W(0), count = (W)p.sharing.terms;
  W sum = W(0);
  for (u64 k = row.first; k < p.sharing.terms; k += place.lanes) sum += row.at(k) - begin;
  const W mean = begin + over_row<Added>(sum, place) / count;
  Pair<W> own{W(0), W(0)};
  for (u64 k = row.first; k < p.sharing.terms; k += place.lanes) {
    const W d = row.at(k) - mean;
    own.a += d;
    own.b += d * d;
  }
  own = over_row<AddedPairs>(own, place);
  W around = own.a == W(0) ? own.b : own.b - own.a * (own.a / count);
  around = (around < W(0) ? W(0) : around) / (W)double_of(p.number);
  if (place.has_row && place.lane == 0) *row.out = Element<T>::narrow(ROOT ? sqrt_(around) : around);
}

// The norms that have terms of their own; GENERAL is the sum of powers.
enum Norm : u32 { ZERO, ONE, TWO, LARGEST, SMALLEST, GENERAL };

template <class W>
DEV W term_of(u32 kind, W x, W exponent) {
  switch (kind) {
    case ZERO: return x == W(0) ? W(0) : W(1);
    case TWO: return x * x;
    case GENERAL: return pow_(magnitude_(x), exponent);
    default: return magnitude_(x);
  }
}
template <class W>
DEV W joined(u32 kind, W a, W b) {
  if (kind == LARGEST) return larger(a, b);
  if (kind == SMALLEST) return smaller(a, b);
  return a + b;
}
template <class W>
DEV W root_of(u32 kind, W sum, double exponent) {
  if (kind == TWO) return sqrt_(sum);
  return kind == GENERAL ? pow_(sum, (W)(1 / exponent)) : sum;
}

// As `over_row`, for a way to join that is known at the launch.
template <class W>
DEV W joined_over_row(u32 kind, W own, const Place& place) {
  SHARED(W, shared, MOST_ROW_THREADS);
  shared[place.slot] = own;
  for (u32 half = place.lanes / 2; half > 0; half >>= 1) {
    __syncthreads();
    if (place.lane < half) shared[place.slot] = joined(kind, shared[place.slot], shared[place.slot + half]);
  }
  return own = shared[place.slot];
}

template <class T>
DEV void norm(const Moments& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  const Row<T> row(p, place);
  const double exponent = double_of(p.number);
  W sum = p.kind == SMALLEST ? Infinite<W>::value() : W(0);
  const u64 step = (u64)place.lanes * p.splits;
  for (u64 k = row.first + blockIdx.y * place.lanes; k < p.sharing.terms; k += step) {
    sum = joined(p.kind, sum, term_of(p.kind, row.at(k), (W)exponent));
  }
  sum = joined_over_row(p.kind, sum, place);
  if (!place.has_row || place.lane != 0) return;
  if (p.splits == 1) *row.out = Element<T>::narrow(root_of(p.kind, sum, exponent));
  else static_cast<W*>(p.parts)[place.row * p.splits + blockIdx.y] = sum;
}

// The second launch: a thread for each row.
template <class T>
DEV void finish_norm(const Moments& p) {
  typedef Wide<T> W;
  const u64 row = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (row >= p.sharing.rows) return;
  const W* parts = static_cast<const W*>(p.parts) + row * p.splits;
  W sum = parts[0];
  for (u32 part = 1; part < p.splits; part++) sum = joined(p.kind, sum, parts[part]);
  i64 at[2];
  p.rows.offsets((u32)row, at);
  static_cast<T*>(p.out)[at[0]] = Element<T>::narrow(root_of(p.kind, sum, double_of(p.number)));
}

#define MOMENT(name, signature, host, dtypes) dtypes(ENTRIES_OF_##name, name)
#define ENTRIES_OF_logsumexp(dtype, T, name) KERNEL(name##_##dtype, Moments) { logsumexp<T>(p); }
#define ENTRIES_OF_var(dtype, T, name) KERNEL(name##_##dtype, Moments) { variance<T, false>(p); }
#define ENTRIES_OF_std(dtype, T, name) KERNEL(name##_##dtype, Moments) { variance<T, true>(p); }
#define ENTRIES_OF_norm(dtype, T, name)                      \
  KERNEL(name##_##dtype, Moments) { norm<T>(p); }            \
  KERNEL(name##_##dtype##_finish, Moments) { finish_norm<T>(p); }

MOMENT(logsumexp, "TIb>T", logsumexp, FLOATS)
MOMENT(var, "TIsb>T", variance, FLOATS)
MOMENT(std, "TIsb>T", variance, FLOATS)
MOMENT(norm, "TsIb>T", norm, FLOATS)
