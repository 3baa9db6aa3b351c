// Normalisation of rows by their mean and variance, and its gradients. What a row is follows from the op: the normalised
// dimensions of a sample, the channels of a group, a channel of a sample or of all samples.
#include "nets.cuh"

struct Normalise {
  void* out;
  const void* in;
  // Null where there is none.
  const void* weight;
  const void* bias;
  // Written by `channel_norm`, and read by what is normalised by given statistics; in the type that is computed in, or of
  // the elements.
  void* mean;
  void* var;
  u64 eps;
  Sharing sharing;
  u32 given, narrow;
  // Output, input, weight, bias, and statistics.
  Dims<5> rows;
  Dims<4> terms;
};

template <class W>
struct Standard {
  // The mean as it is rounded, what it is off by that, and the variance.
  W mean, rest, variance;
};

// What both launches read: a row of an input.
template <class T>
struct Input {
  const T* in;
  u64 first, terms;
  METHOD Wide<T> at(i64 offset) const { return Element<T>::widen(in[offset]); }
};

// The mean is that of the distances from the first element, so that equal numbers have no variance, and what it is off by
// rounding is found with the squares. `offset` gives where a term lies.
template <class T, class Offset>
DEV Standard<Wide<T>> standard_of(const Input<T>& row, const Place& place, const Offset& offset) {
  typedef Wide<T> W;
  const W count = (W)row.terms, begin = place.has_row && row.terms > 0 ? row.at(offset(0)) : W(0);
  W sum = W(0);
  for (u64 k = row.first; k < row.terms; k += place.lanes) sum += row.at(offset(k)) - begin;
  const W mean = begin + over_row<Added>(sum, place) / count;
  Pair<W> own{W(0), W(0)};
  for (u64 k = row.first; k < row.terms; k += place.lanes) {
    const W d = row.at(offset(k)) - mean;
    own.a += d;
    own.b += d * d;
  }
  own = over_row<AddedPairs>(own, place);
  const W rest = own.a / count, variance = own.b / count - rest * rest;
  return Standard<W>{mean, rest, variance < W(0) ? W(0) : variance};
}

template <class W, class T>
DEV W statistic(const void* from, i64 at, u32 narrow) {
  return narrow ? Element<T>::widen(static_cast<const T*>(from)[at]) : static_cast<const W*>(from)[at];
}

template <class T>
DEV void normalise(const Normalise& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[5] = {0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  const Input<T> row{static_cast<const T*>(p.in) + at[1], place.has_row ? place.lane : p.sharing.terms, p.sharing.terms};
  Standard<W> standard;
  if (p.given) {
    standard = Standard<W>{W(0), W(0), W(1)};
    if (place.has_row) {
      standard.mean = statistic<W, T>(p.mean, at[4], p.narrow);
      standard.variance = statistic<W, T>(p.var, at[4], p.narrow);
    }
  } else {
    standard = standard_of<T>(row, place, [&](u64 k) {
      i64 term[4];
      p.terms.offsets((u32)k, term);
      return term[1];
    });
    if (p.mean != nullptr && place.has_row && place.lane == 0) {
      static_cast<W*>(p.mean)[at[4]] = standard.mean;
      static_cast<W*>(p.var)[at[4]] = standard.variance;
    }
  }
  const W rstd = W(1) / sqrt_(standard.variance + Immediate<W>::of(p.eps));
  for (u64 k = row.first; k < row.terms; k += place.lanes) {
    i64 term[4];
    p.terms.offsets((u32)k, term);
    W x = ((row.at(term[1]) - standard.mean) - standard.rest) * rstd;
    if (p.weight != nullptr) x *= Element<T>::widen(static_cast<const T*>(p.weight)[at[2] + term[2]]);
    if (p.bias != nullptr) x += Element<T>::widen(static_cast<const T*>(p.bias)[at[3] + term[3]]);
    static_cast<T*>(p.out)[at[0] + term[0]] = Element<T>::narrow(x);
  }
}

// The same of rows that are kept, whose statistics are their own; weight and bias lie as the row does.
template <class T>
DEV void normalise_kept(const Normalise& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[5] = {0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  const T* in = static_cast<const T*>(p.in) + at[1];
  Kept<T> row(in, place, p.sharing.terms);
  // As `standard_of` does it.
  const W count = (W)p.sharing.terms, begin = place.has_row ? Element<T>::widen(in[0]) : W(0);
  W sum = W(0);
  row.each([&](W& x) { sum += x - begin; });
  const W mean = begin + over_row<Added>(sum, place) / count;
  Pair<W> own{W(0), W(0)};
  row.each([&](W& x) {
    x -= mean;
    own.a += x;
    own.b += x * x;
  });
  own = over_row<AddedPairs>(own, place);
  const W rest = own.a / count, square = own.b / count - rest * rest, variance = square < W(0) ? W(0) : square;
  if (p.mean != nullptr && place.has_row && place.lane == 0) {
    static_cast<W*>(p.mean)[at[4]] = mean;
    static_cast<W*>(p.var)[at[4]] = variance;
  }
  const W rstd = W(1) / sqrt_(variance + Immediate<W>::of(p.eps));
  const Piece<T>* weight = reinterpret_cast<const Piece<T>*>(static_cast<const T*>(p.weight) + at[2]);
  const Piece<T>* bias = reinterpret_cast<const Piece<T>*>(static_cast<const T*>(p.bias) + at[3]);
  row.write(static_cast<T*>(p.out) + at[0], [&](W* x, u32 number) {
    constexpr int V = Piece<T>::count;
#pragma unroll
    for (int k = 0; k < V; k++) x[k] = (x[k] - rest) * rstd;
    if (p.weight != nullptr) {
      const Piece<T> factor = weight[number];
#pragma unroll
      for (int k = 0; k < V; k++) x[k] *= Element<T>::widen(factor.at[k]);
    }
    if (p.bias != nullptr) {
      const Piece<T> added = bias[number];
#pragma unroll
      for (int k = 0; k < V; k++) x[k] += Element<T>::widen(added.at[k]);
    }
  });
}

struct Gradient {
  void* out;
  const void* grad;
  const void* in;
  const void* weight;
  const void* mean;
  const void* var;
  // For the second launch: of each row the mean, what it is off, and the reciprocal of the deviation.
  void* parts;
  u64 eps;
  Sharing sharing;
  u32 given, narrow;
  // The row's number, output, gradient, input, weight, and statistics.
  Dims<6> rows;
  Dims<4> terms;
};

template <class W>
struct Triple {
  W a, b, c;
};
struct AddedTriples {
  template <class W>
  METHOD static Triple<W> join(Triple<W> x, Triple<W> y) { return Triple<W>{x.a + y.a, x.b + y.b, x.c + y.c}; }
};

template <class T>
DEV void input_gradient(const Gradient& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[6] = {0, 0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  const Input<T> row{static_cast<const T*>(p.in) + at[3], place.has_row ? place.lane : p.sharing.terms, p.sharing.terms};
  Standard<W> standard;
  if (p.given) {
    standard = Standard<W>{W(0), W(0), W(1)};
    if (place.has_row) {
      standard.mean = statistic<W, T>(p.mean, at[5], p.narrow);
      standard.variance = statistic<W, T>(p.var, at[5], p.narrow);
    }
  } else {
    standard = standard_of<T>(row, place, [&](u64 k) {
      i64 term[4];
      p.terms.offsets((u32)k, term);
      return term[2];
    });
  }
  const W rstd = W(1) / sqrt_(standard.variance + Immediate<W>::of(p.eps)), count = (W)p.sharing.terms;
  if (place.has_row && place.lane == 0) {
    W* part = static_cast<W*>(p.parts) + 3 * at[0];
    part[0] = standard.mean;
    part[1] = standard.rest;
    part[2] = rstd;
  }
  const auto scaled = [&](const i64 (&term)[4]) {
    const W g = Element<T>::widen(static_cast<const T*>(p.grad)[at[2] + term[1]]);
    if (p.weight == nullptr) return g;
    return g * Element<T>::widen(static_cast<const T*>(p.weight)[at[4] + term[3]]);
  };
  i64 term[4];
  p.terms.offsets(0, term);
  W begin = place.has_row && p.sharing.terms > 0 ? scaled(term) : W(0);
  // From what is no finite number nothing can be counted.
  if (!is_finite(begin)) begin = W(0);
  W sum = W(0);
  for (u64 k = row.first; k < row.terms; k += place.lanes) {
    p.terms.offsets((u32)k, term);
    sum += scaled(term) - begin;
  }
  const W offset = over_row<Added>(sum, place) / count;
  // The distances of the gradient from its mean and of the input from its own, or, where another mean was given, from the
  // first element: of equal ones there is no product.
  W centre = standard.mean;
  if (p.given && place.has_row && p.sharing.terms > 0) {
    p.terms.offsets(0, term);
    const W first = row.at(term[2]);
    centre = is_finite(first) ? first : W(0);
  }
  Triple<W> own{W(0), W(0), W(0)};
  for (u64 k = row.first; k < row.terms; k += place.lanes) {
    p.terms.offsets((u32)k, term);
    const W d = (scaled(term) - begin) - offset, hat = ((row.at(term[2]) - centre) - standard.rest) * rstd;
    own.a += d;
    own.b += hat;
    own.c += d * hat;
  }
  own = over_row<AddedTriples>(own, place);
  const W rest = own.a / count, along = (own.c - own.a * (own.b / count)) / count;
  for (u64 k = row.first; k < row.terms; k += place.lanes) {
    p.terms.offsets((u32)k, term);
    const W d = (scaled(term) - begin) - offset, hat = ((row.at(term[2]) - standard.mean) - standard.rest) * rstd;
    static_cast<T*>(p.out)[at[1] + term[0]] = Element<T>::narrow(((d - rest) - hat * along) * rstd);
  }
}

struct AffineGradient {
  void* weight;
  void* bias;
  const void* grad;
  const void* in;
  const void* parts;
  Sharing sharing;
  // Whether the results are in the elements' type.
  u32 narrow;
  // Weight, bias, gradient, input, and the number of the normalised row.
  Dims<5> rows;
  Dims<3> terms;
};

template <class T>
DEV void affine_gradient(const AffineGradient& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[5] = {0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  Pair<W> own{W(0), W(0)};
  for (u64 k = place.has_row ? place.lane : p.sharing.terms; k < p.sharing.terms; k += place.lanes) {
    i64 term[3];
    p.terms.offsets((u32)k, term);
    const W* part = static_cast<const W*>(p.parts) + 3 * (at[4] + term[2]);
    const W g = Element<T>::widen(static_cast<const T*>(p.grad)[at[2] + term[0]]);
    const W x = Element<T>::widen(static_cast<const T*>(p.in)[at[3] + term[1]]);
    own.a += g * (((x - part[0]) - part[1]) * part[2]);
    own.b += g;
  }
  own = over_row<AddedPairs>(own, place);
  if (!place.has_row || place.lane != 0) return;
  if (p.narrow) {
    static_cast<T*>(p.weight)[at[0]] = Element<T>::narrow(own.a);
    static_cast<T*>(p.bias)[at[1]] = Element<T>::narrow(own.b);
  } else {
    static_cast<W*>(p.weight)[at[0]] = own.a;
    static_cast<W*>(p.bias)[at[1]] = own.b;
  }
}

#define NORM(name, signature, host, dtypes) dtypes(ENTRIES_OF_##name, name)
#define ENTRIES_OF_layer_norm(dtype, T, name)                                \
  KERNEL(normalise_##dtype, Normalise) { normalise<T>(p); }                 \
  KERNEL(normalise_##dtype##_kept, Normalise) { normalise_kept<T>(p); }
#define ENTRIES_OF_layer_norm_backward(dtype, T, name)                             \
  KERNEL(input_gradient_##dtype, Gradient) { input_gradient<T>(p); }               \
  KERNEL(affine_gradient_##dtype, AffineGradient) { affine_gradient<T>(p); }

NORM(layer_norm, "TIOOs>T", layer_norm, FLOATS)
NORM(layer_norm_backward, "TTIOs>TTT", layer_norm_backward, FLOATS)
// The same kernels, of other rows.
REGISTER(group_norm, "TiOOf>T", group_norm, FLOATS)
REGISTER(batch_norm, "TOOOObff>T", batch_norm, FLOATS)
REGISTER(instance_norm, "TOOOObff>T", instance_norm, FLOATS)
REGISTER(channel_norm, "TOObf>TTT", channel_norm, FLOATS)
REGISTER(channel_norm_backward, "TTTTObf>TTT", channel_norm_backward, FLOATS)
