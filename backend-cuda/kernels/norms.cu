// Normalisation of rows by mean and variance, and its gradients. A row depends on the op: the normalised dimensions of a
// sample, the channels of a group, one channel of a sample or of all samples. Rows that are not `centred` (RMS norm) are
// divided by their root mean square: their mean is taken as 0.
#include "nets.cuh"

// Elements are processed in packs of `V`: 1, or a piece of 16 bytes if all operands are contiguous and aligned; weight and
// bias are then constant within a pack. Spaces and `Sharing` count packs.
template <class T, int V>
DEV Pack<T, V> pack_at(const void* from, i64 at) {
  return *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(from) + at);
}

struct Normalise {
  void* out;
  const void* in;
  // Null if absent.
  const void* weight;
  const void* bias;
  // Written by `channel_norm`, and read by normalisation with given statistics; in the compute type, or in the elements'
  // type.
  void* mean;
  void* var;
  // The partial statistics of each block that shares a row, row by row.
  void* parts;
  u64 eps;
  Sharing sharing;
  u32 given, narrow, splits, centred;
  // The strides of output, input, weight, bias, and statistics.
  Dims<5> rows;
  Dims<4> terms;
};

template <class W>
struct Standard {
  // The rounded mean, its rounding error, and the variance.
  W mean, rest, variance;
};

// A thread's part of the elements of a row, or of a block's part of the row.
template <class T, int V>
struct Input {
  const T* in;
  u64 begin, first, end;
  METHOD Wide<T> at(i64 offset) const { return Element<T>::widen(in[offset]); }
  METHOD Pack<T, V> pack(i64 offset) const { return pack_at<T, V>(in, offset); }
};

// The mean is computed from the differences from the first element, so that equal elements have variance 0; its rounding
// error is computed with the squares. `offset` maps an index to the element's offset.
template <class T, int V, class Offset>
DEV Standard<Wide<T>> standard_of(const Input<T, V>& row, const Place& place, bool centred, const Offset& offset) {
  typedef Wide<T> W;
  const W count = (W)((row.end - row.begin) * V);
  W mean = W(0);
  if (centred) {
    const W begin = place.has_row && row.begin < row.end ? row.at(offset(row.begin)) : W(0);
    W sum = W(0);
#pragma unroll(V > 1 ? 1 : 4)
    for (u64 k = row.first; k < row.end; k += place.lanes) {
      const Pack<T, V> own = row.pack(offset(k));
#pragma unroll
      for (int e = 0; e < V; e++) sum += Element<T>::widen(own.at[e]) - begin;
    }
    mean = begin + over_row<Added>(sum, place) / count;
  }
  Pair<W> own{W(0), W(0)};
#pragma unroll(V > 1 ? 1 : 4)
  for (u64 k = row.first; k < row.end; k += place.lanes) {
    const Pack<T, V> terms = row.pack(offset(k));
#pragma unroll
    for (int e = 0; e < V; e++) {
      const W d = Element<T>::widen(terms.at[e]) - mean;
      own.a += d;
      own.b += d * d;
    }
  }
  own = over_row<AddedPairs>(own, place);
  if (!centred) return Standard<W>{W(0), W(0), own.b / count};
  const W rest = own.a / count, variance = own.b / count - rest * rest;
  return Standard<W>{mean, rest, variance < W(0) ? W(0) : variance};
}

// If blocks share a row: the elements of one block, and the combined statistics of all blocks.
struct Share {
  u64 each, begin, end;
  METHOD Share(const Sharing& sharing, u32 splits, u32 part) : each((sharing.terms + splits - 1) / splits) {
    begin = part * each;
    end = sharing.terms - begin < each ? sharing.terms : begin + each;
  }
};
template <class W>
DEV Standard<W> standard_of_parts(const Standard<W>* parts, const Sharing& sharing, u32 splits, const Place& place) {
  const W count = (W)sharing.terms;
  const auto size = [&](u32 part) {
    const Share share(sharing, splits, part);
    return (W)(share.end - share.begin);
  };
  const u32 first = place.has_row ? place.lane : splits;
  const W from = place.has_row ? parts[0].mean : W(0);
  W sum = W(0);
  for (u32 i = first; i < splits; i += place.lanes) sum += size(i) * ((parts[i].mean - from) + parts[i].rest);
  const W off = over_row<Added>(sum, place) / count, mean = from + off, rest = off - (mean - from);
  Pair<W> own{W(0), W(0)};
  for (u32 i = first; i < splits; i += place.lanes) {
    const W d = ((parts[i].mean - mean) + parts[i].rest) - rest;
    own.a += size(i) * parts[i].variance;
    own.b += size(i) * (d * d);
  }
  own = over_row<AddedPairs>(own, place);
  return Standard<W>{mean, rest, (own.a + own.b) / count};
}

// The first launch if blocks share a row.
template <class T, int V>
DEV void statistics(const Normalise& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[5] = {0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  const Share share(p.sharing, p.splits, blockIdx.y);
  const u64 first = place.has_row ? share.begin + place.lane : share.end;
  const Input<T, V> row{static_cast<const T*>(p.in) + at[1], share.begin, first, share.end};
  const Standard<W> standard = standard_of<T, V>(row, place, p.centred, [&](u64 k) {
    i64 term[4];
    p.terms.offsets((u32)k, term);
    return term[1];
  });
  if (place.has_row && place.lane == 0) static_cast<Standard<W>*>(p.parts)[place.row * p.splits + blockIdx.y] = standard;
}

template <class W, class T>
DEV W statistic(const void* from, i64 at, u32 narrow) {
  return narrow ? Element<T>::widen(static_cast<const T*>(from)[at]) : static_cast<const W*>(from)[at];
}

template <class T, int V>
DEV void normalise(const Normalise& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[5] = {0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  const u64 terms = p.sharing.terms;
  const Input<T, V> row{static_cast<const T*>(p.in) + at[1], 0, place.has_row ? place.lane : terms, terms};
  Standard<W> standard;
  if (p.given) {
    standard = Standard<W>{W(0), W(0), W(1)};
    if (place.has_row) {
      standard.mean = statistic<W, T>(p.mean, at[4], p.narrow);
      standard.variance = statistic<W, T>(p.var, at[4], p.narrow);
    }
  } else {
    if (p.splits > 1) {
      const Standard<W>* parts = static_cast<const Standard<W>*>(p.parts) + place.row * p.splits;
      standard = standard_of_parts(parts, p.sharing, p.splits, place);
    } else {
      standard = standard_of<T, V>(row, place, p.centred, [&](u64 k) {
        i64 term[4];
        p.terms.offsets((u32)k, term);
        return term[1];
      });
    }
    if (p.mean != nullptr && place.has_row && place.lane == 0 && blockIdx.y == 0) {
      static_cast<W*>(p.mean)[at[4]] = standard.mean;
      static_cast<W*>(p.var)[at[4]] = standard.variance;
    }
  }
  const W rstd = W(1) / sqrt_(standard.variance + Immediate<W>::of(p.eps));
#pragma unroll(V > 1 ? 1 : 4)
  for (u64 k = row.first + blockIdx.y * place.lanes; k < row.end; k += place.lanes * gridDim.y) {
    i64 term[4];
    p.terms.offsets((u32)k, term);
    Pack<T, V> own = row.pack(term[1]);
#pragma unroll
    for (int e = 0; e < V; e++) {
      W x = ((Element<T>::widen(own.at[e]) - standard.mean) - standard.rest) * rstd;
      if (p.weight != nullptr) x *= Element<T>::widen(static_cast<const T*>(p.weight)[at[2] + term[2]]);
      if (p.bias != nullptr) x += Element<T>::widen(static_cast<const T*>(p.bias)[at[3] + term[3]]);
      own.at[e] = Element<T>::narrow(x);
    }
    *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(p.out) + at[0] + term[0]) = own;
  }
}

// Normalises rows that are cached in registers, by their own statistics; weight and bias have the layout of the row.
template <class T>
DEV void normalise_kept(const Normalise& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[5] = {0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  const T* in = static_cast<const T*>(p.in) + at[1];
  Kept<T> row(in, place, p.sharing.terms);
  // As in `standard_of`.
  const W count = (W)p.sharing.terms;
  W mean = W(0);
  if (p.centred) {
    const W begin = place.has_row ? Element<T>::widen(in[0]) : W(0);
    W sum = W(0);
    row.each([&](W& x) { sum += x - begin; });
    mean = begin + over_row<Added>(sum, place) / count;
  }
  Pair<W> own{W(0), W(0)};
  row.each([&](W& x) {
    x -= mean;
    own.a += x;
    own.b += x * x;
  });
  own = over_row<AddedPairs>(own, place);
  const W rest = p.centred ? own.a / count : W(0), square = own.b / count - rest * rest, variance = square < W(0) ? W(0) : square;
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
  // For the affine gradients, if a row is not a channel: the mean of each row, its rounding error, and the reciprocal
  // standard deviation.
  void* parts;
  // The partial sums of each block that shares a row, row by row, written by the first launch.
  void* sums;
  // The gradients of weight and bias, if a row is a channel.
  void* of_weight;
  void* of_bias;
  u64 eps;
  Sharing sharing;
  u32 given, narrow, centred;
  // The row's number, and the strides of output, gradient, input, weight, statistics, and the gradients of weight and bias.
  Dims<8> rows;
  Dims<4> terms;
};

// The sums over a row: of the shifted weighted gradient, of the normalised input, and of their products; then of the
// gradient, and of its products with the normalised input, which are the gradients of bias and weight.
template <class W>
struct GradientSums {
  W d, hat, product, grad, along;
};
struct AddedGradients {
  template <class W>
  METHOD static GradientSums<W> join(GradientSums<W> x, GradientSums<W> y) {
    return GradientSums<W>{x.d + y.d, x.hat + y.hat, x.product + y.product, x.grad + y.grad, x.along + y.along};
  }
};

// One launch, or two if `gridDim.y` blocks share a row, whose statistics are then given: the sums, then the results.
enum Stage { WHOLE, SUMS, RESULTS };

// Combines the partial results of the blocks of a row.
template <class J, class A>
DEV A over_parts(const void* parts, const Place& place, A none) {
  const A* own = static_cast<const A*>(parts) + place.row * gridDim.y;
  for (u32 i = place.has_row ? place.lane : gridDim.y; i < gridDim.y; i += place.lanes) none = J::join(none, own[i]);
  return over_row<J>(none, place);
}
template <class A>
DEV void keep_part(void* parts, const Place& place, A own) {
  if (place.has_row && place.lane == 0) static_cast<A*>(parts)[place.row * gridDim.y + blockIdx.y] = own;
}

template <class T, int V, Stage STAGE>
DEV void input_gradient(const Gradient& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  const u64 terms = p.sharing.terms, step = place.lanes * gridDim.y;
  const u64 first = place.has_row ? place.lane + blockIdx.y * place.lanes : terms;
  const Input<T, V> row{static_cast<const T*>(p.in) + at[3], 0, first, terms};
  Standard<W> standard;
  if (p.given) {
    standard = Standard<W>{W(0), W(0), W(1)};
    if (place.has_row) {
      standard.mean = statistic<W, T>(p.mean, at[5], p.narrow);
      standard.variance = statistic<W, T>(p.var, at[5], p.narrow);
    }
  } else if constexpr (STAGE == WHOLE) {
    standard = standard_of<T, V>(row, place, p.centred, [&](u64 k) {
      i64 term[4];
      p.terms.offsets((u32)k, term);
      return term[2];
    });
  }
  const W rstd = W(1) / sqrt_(standard.variance + Immediate<W>::of(p.eps)), count = (W)(terms * V);
  const bool is_first = place.has_row && place.lane == 0 && blockIdx.y == 0;
  if (STAGE != SUMS && is_first && p.parts != nullptr) {
    W* part = static_cast<W*>(p.parts) + 3 * at[0];
    part[0] = standard.mean;
    part[1] = standard.rest;
    part[2] = rstd;
  }
  const auto factor = [&](const i64 (&term)[4]) {
    return p.weight == nullptr ? W(1) : Element<T>::widen(static_cast<const T*>(p.weight)[at[4] + term[3]]);
  };
  const auto grads = [&](const i64 (&term)[4]) { return pack_at<T, V>(p.grad, at[2] + term[1]); };
  // Gradients are shifted by the first one, and an input with given statistics by its first element, so that sums over
  // equal values are exactly 0. A non-finite shift is replaced by 0.
  i64 term[4];
  p.terms.offsets(0, term);
  W begin = W(0), centre = standard.mean;
  if (place.has_row && terms > 0 && p.centred) {
    begin = Element<T>::widen(grads(term).at[0]) * factor(term);
    if (p.given) centre = row.at(term[2]);
  }
  if (!is_finite(begin)) begin = W(0);
  if (!is_finite(centre)) centre = W(0);
  GradientSums<W> own{W(0), W(0), W(0), W(0), W(0)};
  if constexpr (STAGE == WHOLE || STAGE == SUMS) {
#pragma unroll(V > 1 ? 1 : 2)
    for (u64 k = first; k < terms; k += step) {
      p.terms.offsets((u32)k, term);
      const Pack<T, V> grad = grads(term), in = row.pack(term[2]);
      const W by = factor(term);
#pragma unroll
      for (int e = 0; e < V; e++) {
        const W g = Element<T>::widen(grad.at[e]), x = Element<T>::widen(in.at[e]);
        const W d = g * by - begin, hat = ((x - centre) - standard.rest) * rstd;
        own.d += d;
        own.hat += hat;
        own.product += d * hat;
        own.grad += g;
        own.along += g * (((x - standard.mean) - standard.rest) * rstd);
      }
    }
    own = over_row<AddedGradients>(own, place);
    if constexpr (STAGE == SUMS) return keep_part(p.sums, place, own);
  } else {
    own = over_parts<AddedGradients>(p.sums, place, own);
  }
  if (is_first && p.of_weight != nullptr) {
    // The gradients of channels are in the compute type.
    static_cast<W*>(p.of_weight)[at[6]] = own.along;
    static_cast<W*>(p.of_bias)[at[7]] = own.grad;
  }
  const W offset = p.centred ? own.d / count : W(0), along = (own.product - offset * own.hat) / count;
#pragma unroll(V > 1 ? 1 : 2)
  for (u64 k = first; k < terms; k += step) {
    p.terms.offsets((u32)k, term);
    const Pack<T, V> grad = grads(term), in = row.pack(term[2]);
    const W by = factor(term);
    Pack<T, V> made;
#pragma unroll
    for (int e = 0; e < V; e++) {
      const W d = (Element<T>::widen(grad.at[e]) * by - begin) - offset;
      const W hat = ((Element<T>::widen(in.at[e]) - standard.mean) - standard.rest) * rstd;
      made.at[e] = Element<T>::narrow((d - hat * along) * rstd);
    }
    *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(p.out) + at[1] + term[0]) = made;
  }
}

struct AffineGradient {
  void* weight;
  void* bias;
  const void* grad;
  const void* in;
  const void* parts;
  // The partial sums of each block, if `splits` blocks share a row.
  void* pairs;
  Sharing sharing;
  // Whether the results are in the elements' type.
  u32 narrow, splits;
  // The strides of weight, bias, gradient and input, and the number of the normalised row.
  Dims<5> rows;
  Dims<3> terms;
};

// One launch, or two if blocks share a row.
template <class T, int V, bool FINISH>
DEV void affine_gradient(const AffineGradient& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[5] = {0, 0, 0, 0, 0};
  if (place.has_row) p.rows.offsets((u32)place.row, at);
  Pair<W> own{W(0), W(0)};
  const Pair<W>* pairs = static_cast<const Pair<W>*>(p.pairs) + place.row * p.splits;
  if constexpr (FINISH) {
    for (u32 i = place.has_row ? place.lane : p.splits; i < p.splits; i += place.lanes) own = AddedPairs::join(own, pairs[i]);
  }
  const u64 terms = FINISH ? 0 : p.sharing.terms;
#pragma unroll(V > 1 ? 1 : 2)
  for (u64 k = place.has_row ? place.lane + blockIdx.y * place.lanes : terms; k < terms; k += place.lanes * gridDim.y) {
    i64 term[3];
    p.terms.offsets((u32)k, term);
    const W* part = static_cast<const W*>(p.parts) + 3 * (at[4] + term[2]);
    const Pack<T, V> grad = pack_at<T, V>(p.grad, at[2] + term[0]), in = pack_at<T, V>(p.in, at[3] + term[1]);
#pragma unroll
    for (int e = 0; e < V; e++) {
      const W g = Element<T>::widen(grad.at[e]), x = Element<T>::widen(in.at[e]);
      own.a += g * (((x - part[0]) - part[1]) * part[2]);
      own.b += g;
    }
  }
  own = over_row<AddedPairs>(own, place);
  if (!FINISH && p.splits > 1) return keep_part(p.pairs, place, own);
  if (!place.has_row || place.lane != 0) return;
  if (p.narrow) {
    static_cast<T*>(p.weight)[at[0]] = Element<T>::narrow(own.a);
    if (p.bias != nullptr) static_cast<T*>(p.bias)[at[1]] = Element<T>::narrow(own.b);
  } else {
    static_cast<W*>(p.weight)[at[0]] = own.a;
    static_cast<W*>(p.bias)[at[1]] = own.b;
  }
}

#define NORM(name, signature, host, dtypes) dtypes(ENTRIES_OF_##name, name)
#define ENTRIES_OF_layer_norm(dtype, T, name)                               \
  NORM_ENTRIES(dtype, T, , 1)                                               \
  NORM_ENTRIES(dtype, T, _pieces, Piece<T>::count)                          \
  KERNEL(normalise_##dtype##_kept, Normalise) { normalise_kept<T>(p); }
#define NORM_ENTRIES(dtype, T, pieces, v)                                           \
  KERNEL(normalise_##dtype##pieces, Normalise) { normalise<T, v>(p); }              \
  KERNEL(statistics_##dtype##pieces, Normalise) { statistics<T, v>(p); }
#define ENTRIES_OF_layer_norm_backward(dtype, T, name)                              \
  NORM_BACKWARD_ENTRIES(dtype, T, , 1)                                              \
  NORM_BACKWARD_ENTRIES(dtype, T, _pieces, Piece<T>::count)                         \
  KERNEL(affine_gradient_##dtype##_finish, AffineGradient) { affine_gradient<T, 1, true>(p); }
#define NORM_BACKWARD_ENTRIES(dtype, T, pieces, v)                                                     \
  KERNEL(input_gradient_##dtype##pieces, Gradient) { input_gradient<T, v, WHOLE>(p); }                 \
  KERNEL(input_gradient_##dtype##_sums##pieces, Gradient) { input_gradient<T, v, SUMS>(p); }           \
  KERNEL(input_gradient_##dtype##_results##pieces, Gradient) { input_gradient<T, v, RESULTS>(p); }     \
  KERNEL(affine_gradient_##dtype##pieces, AffineGradient) { affine_gradient<T, v, false>(p); }

NORM(layer_norm, "TIOOs>T", layer_norm, FLOATS)
NORM(layer_norm_backward, "TTIOs>TTT", layer_norm_backward, FLOATS)
// The same kernels with other rows.
REGISTER(rms_norm, "TIOf>T", rms_norm, FLOATS)
REGISTER(rms_norm_backward, "TTIOf>TT", rms_norm_backward, FLOATS)
REGISTER(group_norm, "TiOOf>T", group_norm, FLOATS)
REGISTER(group_norm_backward, "TTiOf>TTT", group_norm_backward, FLOATS)
REGISTER(batch_norm, "TOOOObff>T", batch_norm, FLOATS)
REGISTER(instance_norm, "TOOOObff>T", instance_norm, FLOATS)
REGISTER(frozen_norm, "TTTOOf>T", frozen_norm, FLOATS)
REGISTER(channel_norm, "TOObf>TTT", channel_norm, FLOATS)
REGISTER(channel_norm_backward, "TTTTObf>TTT", channel_norm_backward, FLOATS)
