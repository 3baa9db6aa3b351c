// Sampling of images at the locations of a grid: a thread computes all channels of one pixel, with locations in f64. The
// gradients read precomputed lists of taps. The gradient of the images adds the contributions to each element in the order
// of a stable sort by element.
#include "nets.cuh"

enum Mode : u32 { BILINEAR, NEAREST, BICUBIC };
enum Padding : u32 { ZEROS, BORDER, REFLECTION };

struct GridSample {
  void* out;
  const void* image;
  const void* grid;
  // The image's last three sizes and strides, and the strides between channels and between coordinates.
  u64 size[3];
  i64 stride[3];
  i64 out_channel, image_channel, coordinate;
  u64 channels, count;
  u32 rank, mode, padding, align_corners;
  // The offset of a pixel in the output, of its sample in the image, and of its location in the grid.
  Dims<3> pixels;
};

// The elements along one dimension from which a pixel is interpolated, and their weights.
struct Taps {
  u32 count;
  i64 at[4];
  double weight[4];
  METHOD void add(double place, double last, double share) {
    // Elements outside the image do not contribute, nor does a NaN location.
    if (!(place >= 0 && place <= last)) return;
    at[count] = (i64)place;
    weight[count++] = share;
  }
};

// A dimension of the images, with the sampling modes.
struct Side {
  double size;
  u32 mode, padding, align_corners;
  METHOD Side(u64 size, u32 mode, u32 padding, u32 align_corners)
      : size((double)size), mode(mode), padding(padding), align_corners(align_corners) {}
  METHOD double last() const { return size - 1; }
  // The change of the location, in elements, per unit of the coordinate.
  METHOD double scale() const { return (align_corners ? last() : size) / 2; }
  METHOD double at(double place) const { return (place + 1) * scale() - (align_corners ? 0 : 0.5); }
  // The bounds of reflection: the lower one, and the distance to the upper one.
  METHOD double low() const { return align_corners ? 0 : -0.5; }
  METHOD double span() const { return align_corners ? last() : size; }
  // Whether a location is reflected an odd number of times, after the reflection at the lower bound.
  METHOD bool is_turned(double at) const { return fmod_(floor_(magnitude_(at - low()) / span()), 2.0) == 1; }
};

// Applies the padding mode to a location outside the image. Not inlined, since it is long.
CALLED double moved(Side side, double at) {
  const double last = side.last(), low = side.low(), span = side.span();
  if (side.padding == ZEROS) return at;
  if (side.padding == REFLECTION) {
    if (span == 0) return at * 0;
    const double rest = fmod_(magnitude_(at - low), span);
    at = low + (side.is_turned(at) ? span - rest : rest);
  }
  return at < 0 ? 0 : at > last ? last : at;
}

// The derivative of the padded location: -1 if it is reflected an odd number of times, 0 if it is clamped to the border.
DEV double direction(const Side& side, double at) {
  if (side.padding == ZEROS) return 1;
  const double inside = side.padding == BORDER ? at : moved(side, at);
  if (!(inside > 0 && inside < side.last())) return 0;
  return side.padding == BORDER || (at >= side.low()) != side.is_turned(at) ? 1 : -1;
}

// The cubic convolution kernel (R. Keys, "Cubic convolution interpolation", 1981, with a = -0.75) at a distance, and its
// derivative.
DEV double cubic(double d) {
  const double a = -0.75;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}
DEV double cubic_slope(double d) {
  const double a = -0.75;
  if (d <= 1) return (3 * (a + 2) * d - 2 * (a + 3)) * d;
  return (3 * a * d - 10 * a) * d + 8 * a;
}

DEV Taps taps_of(const GridSample& p, u32 d, double place) {
  const Side side(p.size[d], p.mode, p.padding, p.align_corners);
  const double last = side.last(), at = side.at(place);
  Taps taps;
  taps.count = 0;
  // In bicubic mode each of the four elements is padded, otherwise the location is.
  const u32 count = p.mode == NEAREST ? 1 : p.mode == BILINEAR ? 2 : 4;
  const double inside = count == 4 ? at : moved(side, at);
  const double first = count == 1 ? round_(inside) : floor_(inside), share = inside - first;
#pragma unroll 1
  for (u32 k = 0; k < count; k++) {
    if (count == 4) {
      taps.add(moved(side, first + k - 1), last, cubic(magnitude_(share + 1 - k)));
    } else {
      taps.add(first + k, last, count == 1 ? 1 : k == 0 ? 1 - share : share);
    }
  }
  return taps;
}

template <class T>
DEV void sample(const GridSample& p) {
  typedef Wide<T> W;
  const u64 pixel = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (pixel >= p.count) return;
  i64 from[3];
  p.pixels.offsets((u32)pixel, from);
  // The first coordinate is that of the last dimension.
  Taps taps[3];
#pragma unroll 1
  for (u32 d = 0; d < 3; d++) {
    if (d + p.rank < 3) {
      taps[d].count = 1;
      taps[d].at[0] = 0;
      taps[d].weight[0] = 1;
    } else {
      const T* grid = static_cast<const T*>(p.grid) + from[2] + (i64)(2 - d) * p.coordinate;
      taps[d] = taps_of(p, d, (double)Element<T>::widen(*grid));
    }
  }
#pragma unroll 1
  for (u64 c = 0; c < p.channels; c++) {
    const T* image = static_cast<const T*>(p.image) + from[1] + (i64)c * p.image_channel;
    W sum = W(0);
#pragma unroll 1
    for (u32 i = 0; i < taps[0].count; i++)
#pragma unroll 1
      for (u32 j = 0; j < taps[1].count; j++)
#pragma unroll 1
        for (u32 k = 0; k < taps[2].count; k++) {
          const W weight = (W)(taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k]);
          const i64 at = taps[0].at[i] * p.stride[0] + taps[1].at[j] * p.stride[1] + taps[2].at[k] * p.stride[2];
          sum += Element<T>::widen(image[at]) * weight;
        }
    static_cast<T*>(p.out)[from[0] + (i64)c * p.out_channel] = Element<T>::narrow(sum);
  }
}

// The taps of all pixels: for each of `rank` dimensions the index of the element, below 0 outside, its weight, and the
// derivative of the weight with respect to the coordinate. A pixel has `all` taps in total, `taps` (2 to the `shift`) per
// dimension.
struct Lists {
  i32* at;
  double* weights;
  double* slopes;
  u64 count;
  u32 rank, taps, shift, all;
  // The index in the lists of tap `tap` of a pixel along an axis, the outermost axis first.
  METHOD u64 index(u32 axis, u32 tap, u64 pixel) const {
    const u32 k = tap >> shift * (rank - 1 - axis) & (taps - 1);
    return (u64)(axis * taps + k) * count + pixel;
  }
};

struct GridTaps {
  const void* grid;
  i64 coordinate;
  u64 size[3];
  Lists lists;
  // The grid's dtype, as an index into FLOATS.
  u32 dtype, mode, padding, align_corners;
  Dims<1> pixels;
};

DEV double number_at(const void* from, i64 at, u32 dtype) {
  switch (dtype) {
    case 0: return Element<f16>::widen(static_cast<const f16*>(from)[at]);
    case 1: return Element<bf16>::widen(static_cast<const bf16*>(from)[at]);
    case 2: return static_cast<const float*>(from)[at];
    default: return static_cast<const double*>(from)[at];
  }
}

// One thread per pixel and axis.
KERNEL(grid_sample_taps, GridTaps) {
  const u64 pixel = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  const u32 axis = blockIdx.y;
  if (pixel >= p.lists.count) return;
  i64 from[1];
  p.pixels.offsets((u32)pixel, from);
  // The first coordinate is that of the last dimension.
  const double place = number_at(p.grid, from[0] + (i64)(p.lists.rank - 1 - axis) * p.coordinate, p.dtype);
  const Side side(p.size[axis], p.mode, p.padding, p.align_corners);
  const double at = side.at(place), inside = p.mode == BICUBIC ? at : moved(side, at);
  const double first = p.mode == NEAREST ? round_(inside) : floor_(inside), share = inside - first;
  const double slope = p.mode == BILINEAR ? direction(side, at) * side.scale() : side.scale();
#pragma unroll 1
  for (u32 k = 0; k < p.lists.taps; k++) {
    const double away = magnitude_(share + 1 - k), element = p.mode == BICUBIC ? moved(side, first + k - 1) : first + k;
    const bool is_there = element >= 0 && element <= side.last();
    const u64 to = (u64)(axis * p.lists.taps + k) * p.lists.count + pixel;
    p.lists.at[to] = is_there ? (i32)element : -1;
    p.lists.weights[to] = p.mode == BICUBIC ? cubic(away) : p.mode == NEAREST ? 1 : k == 0 ? 1 - share : share;
    if (p.lists.slopes == nullptr) continue;
    const double ahead = p.mode == BICUBIC ? cubic_slope(away) : 1;
    p.lists.slopes[to] = (p.mode == BICUBIC ? k < 2 : k > 0) ? ahead * slope : -ahead * slope;
  }
}

// The sort key (the element) and the weight of each tap; `none` is the key of taps outside.
struct GridTargets {
  Lists lists;
  u64* keys;
  u32* order;
  double* weights;
  u64 size[3];
  // The number of elements of a channel, and of pixels of a sample.
  u64 plane, pixels;
  u64 none;
};
KERNEL(grid_sample_targets, GridTargets) {
  const u64 pixel = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (pixel >= p.lists.count) return;
  u64 element = 0;
  bool is_there = true;
  double weight = 1;
#pragma unroll 1
  for (u32 axis = 0; axis < p.lists.rank; axis++) {
    const u64 index = p.lists.index(axis, blockIdx.y, pixel);
    const i32 at = p.lists.at[index];
    is_there = is_there && at >= 0;
    element = element * p.size[axis] + (u64)at;
    weight *= p.lists.weights[index];
  }
  const u64 number = blockIdx.y * p.lists.count + pixel;
  p.keys[number] = is_there ? (u32)pixel / (u32)p.pixels * p.plane + element : p.none;
  p.order[number] = (u32)number;
  p.weights[number] = weight;
}

struct GridSums {
  void* out;
  const void* grad;
  const u64* keys;
  const u32* order;
  const double* weights;
  u64 keys_count, elements, channels;
  i64 out_channel, grad_channel;
  // The number of pixels, the offset of each in the gradient, and the offset of each element in the output.
  Divisor count;
  Dims<1> pixels, places;
};

// The number of channels per thread.
constexpr u32 CHANNELS = 4;

template <class T>
DEV void input_gradient(const GridSums& p) {
  typedef Wide<T> W;
  const u64 element = (u64)blockIdx.x * ROW_THREADS + threadIdx.x;
  if (element >= p.elements) return;
  u64 i = 0;
  for (u64 end = p.keys_count; i < end;) {
    const u64 middle = i + (end - i) / 2;
    if (p.keys[middle] < element) i = middle + 1;
    else end = middle;
  }
  const u64 first = (u64)blockIdx.y * CHANNELS;
  const T* grad = static_cast<const T*>(p.grad) + (i64)first * p.grad_channel;
  W sums[CHANNELS];
#pragma unroll
  for (u32 c = 0; c < CHANNELS; c++) sums[c] = W(0);
#pragma unroll 1
  for (; i < p.keys_count && p.keys[i] == element; i++) {
    const u32 number = p.order[i];
    const W weight = (W)p.weights[number];
    i64 from[1];
    p.pixels.offsets(number - p.count.quotient(number) * p.count.value, from);
#pragma unroll
    for (u32 c = 0; c < CHANNELS; c++) {
      if (first + c < p.channels) sums[c] += Element<T>::widen(grad[from[0] + c * p.grad_channel]) * weight;
    }
  }
  i64 to[1];
  p.places.offsets((u32)element, to);
  T* out = static_cast<T*>(p.out) + to[0] + (i64)first * p.out_channel;
#pragma unroll
  for (u32 c = 0; c < CHANNELS; c++) {
    if (first + c < p.channels) out[c * p.out_channel] = Element<T>::narrow(sums[c]);
  }
}

struct GridSlopes {
  void* out;
  const void* grad;
  const void* image;
  Lists lists;
  i64 stride[3];
  i64 coordinate, grad_channel, image_channel;
  // The rows are pixels, reduced over the channels.
  Sharing sharing;
  // The offset of a pixel in the output and the gradient, of its sample in the image, and its number.
  Dims<4> pixels;
};

template <class W>
struct Coordinates {
  W of[3];
};
struct AddedCoordinates {
  template <class W>
  METHOD static Coordinates<W> join(Coordinates<W> a, Coordinates<W> b) {
    return Coordinates<W>{{a.of[0] + b.of[0], a.of[1] + b.of[1], a.of[2] + b.of[2]}};
  }
};

template <class T>
DEV void grid_gradient(const GridSlopes& p) {
  typedef Wide<T> W;
  const Place place(p.sharing);
  i64 at[4] = {0, 0, 0, 0};
  if (place.has_row) p.pixels.offsets((u32)place.row, at);
  const T* grad = static_cast<const T*>(p.grad) + at[1];
  Coordinates<W> own{{W(0), W(0), W(0)}};
#pragma unroll 1
  for (u32 tap = place.has_row ? 0 : p.lists.all; tap < p.lists.all; tap++) {
    const T* image = static_cast<const T*>(p.image) + at[2];
    // For each axis, the outermost first: the product of its slope and the weights of the other axes.
    double slopes[3] = {1, 1, 1};
    bool is_there = true;
#pragma unroll
    for (u32 axis = 0; axis < 3; axis++) {
      if (axis >= p.lists.rank) continue;
      const u64 index = p.lists.index(axis, tap, (u64)at[3]);
      const i32 element = p.lists.at[index];
      const double weight = p.lists.weights[index], slope = p.lists.slopes[index];
      is_there = is_there && element >= 0;
      image += element * p.stride[axis];
#pragma unroll
      for (u32 by = 0; by < 3; by++) slopes[by] *= axis == by ? slope : weight;
    }
    // Taps outside are not read: infinity times a slope of 0 is NaN.
    if (!is_there) continue;
    W product = W(0);
#pragma unroll 4
    for (u64 c = place.lane; c < p.sharing.terms; c += place.lanes) {
      product += Element<T>::widen(image[(i64)c * p.image_channel]) * Element<T>::widen(grad[(i64)c * p.grad_channel]);
    }
#pragma unroll
    for (u32 by = 0; by < 3; by++) {
      if (by < p.lists.rank) own.of[by] += product * (W)slopes[by];
    }
  }
  own = over_row<AddedCoordinates>(own, place);
  if (!place.has_row || place.lane != 0) return;
  T* out = static_cast<T*>(p.out) + at[0];
#pragma unroll
  for (u32 by = 0; by < 3; by++) {
    if (by < p.lists.rank) out[(i64)(p.lists.rank - 1 - by) * p.coordinate] = Element<T>::narrow(own.of[by]);
  }
}

#define SAMPLE(name, signature, host, dtypes) dtypes(ENTRIES_OF_##name, name)
#define ENTRIES_OF_grid_sample(dtype, T, name) KERNEL(name##_##dtype, GridSample) { sample<T>(p); }
#define ENTRIES_OF_grid_sample_input_grad(dtype, T, name) KERNEL(name##_##dtype, GridSums) { input_gradient<T>(p); }
#define ENTRIES_OF_grid_sample_grid_grad(dtype, T, name) KERNEL(name##_##dtype, GridSlopes) { grid_gradient<T>(p); }

SAMPLE(grid_sample, "TTSSb>T", grid_sample, FLOATS)
SAMPLE(grid_sample_input_grad, "TTISSb>T", grid_sample_input_grad, FLOATS)
SAMPLE(grid_sample_grid_grad, "TTTSSb>T", grid_sample_grid_grad, FLOATS)
