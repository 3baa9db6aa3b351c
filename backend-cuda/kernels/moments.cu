// Reductions of floats in two passes, or of powers: `logsumexp`, `var`, `std`, `norm`.
#include "nets.cuh"

struct Moments {
  void* out;
  const void* in;
  // The partial results of each row, if several blocks share it.
  void* parts;
  Sharing sharing;
  // The divisor of the sum of squares, or the order of the norm, in f64.
  u64 number;
  // The kind of norm; for the variance, whether to return its root.
  u32 kind, splits;
  Dims<2> rows;
  Dims<1> terms;
};

// The elements of a row that belong to block `part` of the blocks that share the row.
struct Share {
  u64 begin, end;
  METHOD Share(const Moments& p, u32 part) {
    const u64 each = (p.sharing.terms + p.splits - 1) / p.splits;
    begin = part * each < p.sharing.terms ? part * each : p.sharing.terms;
    end = p.sharing.terms - begin < each ? p.sharing.terms : begin + each;
  }
};

// A thread's elements of a row: `first`, `first + lanes`, .. below `end`.
template <class T>
struct Row {
  const T* in;
  T* out;
  u64 begin, first, end;
  const Moments& p;
  METHOD Row(const Moments& p, const Place& place) : p(p) {
    i64 at[2] = {0, 0};
    if (place.has_row) p.rows.offsets((u32)place.row, at);
    out = static_cast<T*>(p.out) + at[0];
    in = static_cast<const T*>(p.in) + at[1];
    const Share share(p, blockIdx.y);
    begin = share.begin;
    end = share.end;
    first = place.has_row ? begin + place.lane : end;
  }
  METHOD Wide<T> at(u64 term) const {
    i64 from[1];
    p.terms.offsets((u32)term, from);
    return Element<T>::widen(in[from[0]]);
  }
  // Calls `f` with each element of the thread; several loads are in flight if the reduced space is one dimension.
  template <class F>
  METHOD void each(u32 lanes, const F& f) const {
    const i64 step = p.terms.ndim == 0 ? 0 : p.terms.stride[0][0];
    u64 k = first;
    if (p.terms.ndim <= 1) {
#pragma unroll 4
      for (; k < end; k += lanes) f(Element<T>::widen(in[(i64)k * step]));
    }
#pragma unroll 1
    for (; k < end; k += lanes) f(at(k));
  }
};

template <class A>
DEV A& part_of(const Moments& p, u64 row, u32 part) { return static_cast<A*>(p.parts)[row * p.splits + part]; }

// An infinite maximum would become NaN in the difference from itself.
template <class W>
DEV W shift_of(W largest) { return is_infinite(largest) ? W(0) : largest; }

template <class T>
DEV void logsumexp(const Moments& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  const Row<T> row(p, place);
  W largest = -Infinite<W>::value();
  row.each(place.lanes, [&](W x) { largest = larger(largest, x); });
  largest = over_row<Largest>(largest, place);
  const W shift = shift_of(largest);
  W sum = W(0);
  for (u64 k = row.first; k < row.end; k += place.lanes) sum += exp_(row.at(k) - shift);
  sum = over_row<Added>(sum, place);
  if (!place.has_row || place.lane != 0) return;
  if (p.splits == 1) *row.out = Element<T>::narrow(log_(sum) + shift);
  else part_of<Pair<W>>(p, place.row, blockIdx.y) = Pair<W>{largest, sum};
}

// The mean is computed from the differences from the first element, so that equal elements have variance 0. `a` and `b` are
// the sums of the deviations from the rounded mean, and of their squares (corrected two-pass algorithm).
template <class W>
struct Spread {
  W mean;
  Pair<W> sums;
};
template <class T>
DEV void store_variance(const Moments& p, T* out, Pair<Wide<T>> sums) {
  typedef Wide<T> W;
  W around = sums.a == W(0) ? sums.b : sums.b - sums.a * (sums.a / (W)p.sharing.terms);
  around = (around < W(0) ? W(0) : around) / (W)double_of(p.number);
  *out = Element<T>::narrow(p.kind ? sqrt_(around) : around);
}

template <class T>
DEV void variance(const Moments& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  const Row<T> row(p, place);
  const W begin = place.has_row && row.begin < row.end ? row.at(row.begin) : W(0), count = (W)(row.end - row.begin);
  W sum = W(0);
  row.each(place.lanes, [&](W x) { sum += x - begin; });
  const W mean = begin + over_row<Added>(sum, place) / count;
  Pair<W> own{W(0), W(0)};
  row.each(place.lanes, [&](W x) {
    const W d = x - mean;
    own.a += d;
    own.b += d * d;
  });
  own = over_row<AddedPairs>(own, place);
  if (!place.has_row || place.lane != 0) return;
  if (p.splits == 1) store_variance(p, row.out, own);
  else part_of<Spread<W>>(p, place.row, blockIdx.y) = Spread<W>{mean, own};
}

// The second launch if blocks share rows, with one block per row.
struct Whole : Place {
  METHOD explicit Whole(const Moments& p) : Place(Sharing{p.sharing.rows, p.splits, ROW_THREADS, 0}) {}
};
template <class T>
DEV T* row_out(const Moments& p, const Place& place) {
  i64 at[2];
  p.rows.offsets((u32)place.row, at);
  return static_cast<T*>(p.out) + at[0];
}

template <class T>
DEV void finish_logsumexp(const Moments& p) {
  typedef Wide<T> W;
  const Whole place(p);
  W largest = -Infinite<W>::value();
  for (u32 i = place.lane; i < p.splits; i += place.lanes) largest = larger(largest, part_of<Pair<W>>(p, place.row, i).a);
  largest = over_row<Largest>(largest, place);
  const W shift = shift_of(largest);
  W sum = W(0);
  for (u32 i = place.lane; i < p.splits; i += place.lanes) {
    const Pair<W> part = part_of<Pair<W>>(p, place.row, i);
    // If all elements are minus infinity, the sum is 0.
    if (part.a != -Infinite<W>::value()) sum += part.b * exp_(shift_of(part.a) - shift);
  }
  sum = over_row<Added>(sum, place);
  if (place.lane == 0) *row_out<T>(p, place) = Element<T>::narrow(log_(sum) + shift);
}

template <class T>
DEV void finish_variance(const Moments& p) {
  typedef Wide<T> W;
  const Whole place(p);
  const auto size = [&](u32 part) {
    const Share share(p, part);
    return (W)(share.end - share.begin);
  };
  const W begin = part_of<Spread<W>>(p, place.row, 0).mean;
  W sum = W(0);
  for (u32 i = place.lane; i < p.splits; i += place.lanes) {
    const Spread<W> part = part_of<Spread<W>>(p, place.row, i);
    sum += size(i) * (part.mean - begin) + part.sums.a;
  }
  const W mean = begin + over_row<Added>(sum, place) / (W)p.sharing.terms;
  Pair<W> own{W(0), W(0)};
  for (u32 i = place.lane; i < p.splits; i += place.lanes) {
    const Spread<W> part = part_of<Spread<W>>(p, place.row, i);
    const W d = part.mean - mean;
    own.a += size(i) * d + part.sums.a;
    own.b += part.sums.b + d * (size(i) * d + W(2) * part.sums.a);
  }
  own = over_row<AddedPairs>(own, place);
  if (place.lane == 0) store_variance(p, row_out<T>(p, place), own);
}

// The norms with special cases; GENERAL is a sum of powers.
enum Norm : u32 { ZERO, ONE, TWO, LARGEST, SMALLEST, GENERAL };

// Powers of f32 may overflow although the norm does not, so they are added in f64.
template <class T>
using NormOf = Long<Wide<T>>;

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

// As `over_row`, with a combination that is selected at run time.
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
  typedef NormOf<T> W;
  const Place place(p.sharing);
  const Row<T> row(p, place);
  const double exponent = double_of(p.number);
  W sum = p.kind == SMALLEST ? Infinite<W>::value() : W(0);
  for (u64 k = row.first; k < row.end; k += place.lanes) {
    sum = joined(p.kind, sum, term_of(p.kind, (W)row.at(k), (W)exponent));
  }
  sum = joined_over_row(p.kind, sum, place);
  if (!place.has_row || place.lane != 0) return;
  if (p.splits == 1) *row.out = Element<T>::narrow((Wide<T>)root_of(p.kind, sum, exponent));
  else part_of<W>(p, place.row, blockIdx.y) = sum;
}

// The second launch, with one thread per row.
template <class T>
DEV void finish_norm(const Moments& p) {
  typedef NormOf<T> W;
  const u64 row = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (row >= p.sharing.rows) return;
  const W* parts = static_cast<const W*>(p.parts) + row * p.splits;
  W sum = parts[0];
  for (u32 part = 1; part < p.splits; part++) sum = joined(p.kind, sum, parts[part]);
  i64 at[2];
  p.rows.offsets((u32)row, at);
  static_cast<T*>(p.out)[at[0]] = Element<T>::narrow((Wide<T>)root_of(p.kind, sum, double_of(p.number)));
}

#define MOMENT(name, signature, host, dtypes) dtypes(ENTRIES_OF_##name, name)
#define ENTRIES_OF_logsumexp(dtype, T, name)                 \
  KERNEL(name##_##dtype, Moments) { logsumexp<T>(p); }       \
  KERNEL(name##_##dtype##_finish, Moments) { finish_logsumexp<T>(p); }
#define ENTRIES_OF_var(dtype, T, name)                       \
  KERNEL(name##_##dtype, Moments) { variance<T>(p); }        \
  KERNEL(name##_##dtype##_finish, Moments) { finish_variance<T>(p); }
#define ENTRIES_OF_norm(dtype, T, name)                      \
  KERNEL(name##_##dtype, Moments) { norm<T>(p); }            \
  KERNEL(name##_##dtype##_finish, Moments) { finish_norm<T>(p); }

MOMENT(logsumexp, "TIb>T", logsumexp, FLOATS)
MOMENT(var, "TIsb>T", variance, FLOATS)
REGISTER(std, "TIsb>T", variance, FLOATS)
MOMENT(norm, "TsIb>T", norm, FLOATS)
