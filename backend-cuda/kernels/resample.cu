// Weighted sums of image elements: pooling, interpolation, and the gradients of those that are sums. The host computes a
// table for each spatial dimension with the elements and weights of each output position; `max_pool` alone needs none. A
// gradient is the same sum with transposed tables, so that no two threads write one element.
#include "nets.cuh"

// The table of a dimension: the range of each position in the lists, the lists of elements and of weights, and the divisor
// of each position. Values are in the compute type.
struct Table {
  const u32* ends;
  const u32* elements;
  const void* weights;
  const void* divisors;
};

struct Resample {
  void* out;
  void* places;
  const void* in;
  Table table[3];
  // The image's sizes and strides: the last two dimensions, or all three.
  u64 size[3];
  i64 stride[3];
  u64 count;
  // Whether the sum is divided by the weights.
  u32 divides;
  // The results: offsets of values and indices, the offset of the channel in the image, and the position in each dimension.
  Dims<6> results;
};

template <class T, class Body>
DEV void each_element(const Resample& p, const i64 (&at)[6], const Body& body) {
  const Table &depth = p.table[0], &height = p.table[1], &width = p.table[2];
  for (u32 i = depth.ends[at[3]]; i < depth.ends[at[3] + 1]; i++)
    for (u32 j = height.ends[at[4]]; j < height.ends[at[4] + 1]; j++)
      for (u32 k = width.ends[at[5]]; k < width.ends[at[5] + 1]; k++) {
        const u32 d = depth.elements[i], h = height.elements[j], w = width.elements[k];
        const i64 from = at[2] + d * p.stride[0] + h * p.stride[1] + w * p.stride[2];
        body(Element<T>::widen(static_cast<const T*>(p.in)[from]), i, j, k, (d * p.size[1] + h) * p.size[2] + w);
      }
}

template <class T>
DEV void weighted(const Resample& p) {
  typedef Wide<T> W;
  const u64 result = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (result >= p.count) return;
  i64 at[6];
  p.results.offsets((u32)result, at);
  const W *a = static_cast<const W*>(p.table[0].weights), *b = static_cast<const W*>(p.table[1].weights),
          *c = static_cast<const W*>(p.table[2].weights);
  W sum = W(0);
  each_element<T>(p, at, [&](W x, u32 i, u32 j, u32 k, u64) {
    const W weight = a[i] * b[j] * c[k];
    sum += p.divides ? x / weight : x * weight;
  });
  W divisor = W(1);
#pragma unroll
  for (u32 d = 0; d < 3; d++) divisor *= static_cast<const W*>(p.table[d].divisors)[at[3 + d]];
  static_cast<T*>(p.out)[at[0]] = Element<T>::narrow(sum / divisor);
}

// The first of the largest elements and its index, or the last NaN.
template <class T>
DEV void largest(const Resample& p) {
  typedef Wide<T> W;
  const u64 result = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (result >= p.count) return;
  i64 at[6];
  p.results.offsets((u32)result, at);
  W largest = -Infinite<W>::value();
  i64 found = -1;
  each_element<T>(p, at, [&](W x, u32, u32, u32, u64 place) {
    if (x > largest || is_nan(x) || found < 0) {
      largest = x;
      found = (i64)place;
    }
  });
  static_cast<T*>(p.out)[at[0]] = Element<T>::narrow(largest);
  static_cast<i64*>(p.places)[at[1]] = found;
}

// Max pooling over a window, without tables.
struct Pool {
  void* out;
  // Null if only the values are requested.
  i64* places;
  const void* in;
  u64 count;
  // The spatial dimensions: the strides, the image's sizes, the window, and the results' sizes.
  i64 stride[3], out_stride[3], places_stride[3];
  u32 size[3], window[3], step[3], padding[3], dilation[3];
  Divisor results[3];
  // Batch and channels, with the strides of output, indices and image.
  Dims<3> planes;
};

template <class T>
DEV void pool(const Pool& p) {
  typedef Wide<T> W;
  // Loads of a row that are in flight together.
  constexpr u32 TAPS = 3;
  const u64 result = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (result >= p.count) return;
  u32 rest = (u32)result;
  // The start of the window; before the image it wraps to a large value, outside as well.
  u32 begin[3];
  i64 out = 0, places = 0;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    const u32 next = p.results[d].quotient(rest), at = rest - next * p.results[d].value;
    rest = next;
    begin[d] = at * p.step[d] - p.padding[d];
    out += at * p.out_stride[d];
    places += at * p.places_stride[d];
  }
  i64 plane[3];
  p.planes.offsets(rest, plane);
  const T* in = static_cast<const T*>(p.in) + plane[2];
  W largest = -Infinite<W>::value();
  i64 found = -1;
#pragma unroll 1
  for (u32 i = 0; i < p.window[0]; i++) {
    const u32 d = begin[0] + i * p.dilation[0];
#pragma unroll 1
    for (u32 j = 0; j < p.window[1]; j++) {
      const u32 h = begin[1] + j * p.dilation[1];
      if (d >= p.size[0] || h >= p.size[1]) continue;
      const T* row = in + d * p.stride[0] + h * p.stride[1];
      const i64 first = ((i64)d * p.size[1] + h) * p.size[2];
#pragma unroll 1
      for (u32 k = 0; k < p.window[2]; k += TAPS) {
        W own[TAPS];
        const u32 at = begin[2] + k * p.dilation[2];
#pragma unroll
        for (u32 t = 0; t < TAPS; t++) {
          const u32 w = at + t * p.dilation[2];
          if (k + t < p.window[2] && w < p.size[2]) own[t] = Element<T>::widen(row[w * p.stride[2]]);
        }
#pragma unroll
        for (u32 t = 0; t < TAPS; t++) {
          const u32 w = at + t * p.dilation[2];
          if (k + t < p.window[2] && w < p.size[2] && (own[t] > largest || is_nan(own[t]) || found < 0)) {
            largest = own[t];
            found = first + w;
          }
        }
      }
    }
  }
  static_cast<T*>(p.out)[plane[0] + out] = Element<T>::narrow(largest);
  if (p.places != nullptr) p.places[plane[1] + places] = found;
}

#define RESAMPLE(name, signature, host, dtypes) dtypes(ENTRIES_OF_##name, name)
#define ENTRIES_OF_max_pool(dtype, T, name)                \
  KERNEL(largest_##dtype, Resample) { largest<T>(p); } \
  KERNEL(max_pool_##dtype, Pool) { pool<T>(p); }
#define ENTRIES_OF_avg_pool(dtype, T, name) KERNEL(weighted_##dtype, Resample) { weighted<T>(p); }

RESAMPLE(max_pool, "TIIIIb>TT", max_pool, FLOATS)
RESAMPLE(avg_pool, "TIIIbbi>T", avg_pool, FLOATS)
// Ops with other tables or outputs, and the kernels of `max_pool` and `avg_pool`.
REGISTER(max_pool_values, "TIIIIb>T", max_pool, FLOATS)
REGISTER(avg_pool_backward, "TIIIIbbi>T", avg_pool_backward, FLOATS)
REGISTER(adaptive_max_pool, "TI>TT", adaptive_max_pool, FLOATS)
REGISTER(adaptive_avg_pool, "TI>T", adaptive_avg_pool, FLOATS)
REGISTER(adaptive_avg_pool_backward, "TI>T", adaptive_avg_pool_backward, FLOATS)
REGISTER(interpolate, "TISbF>T", interpolate, FLOATS)
REGISTER(interpolate_backward, "TISbF>T", interpolate_backward, FLOATS)
