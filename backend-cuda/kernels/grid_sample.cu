// Images sampled at the places of a grid: a thread makes the channels of one pixel. Where a place lies is computed in f64.
#include "nets.cuh"

enum Mode : u32 { BILINEAR, NEAREST, BICUBIC };
enum Padding : u32 { ZEROS, BORDER, REFLECTION };

struct GridSample {
  void* out;
  const void* image;
  const void* grid;
  // Of the image's last three dimensions, and from channel to channel and coordinate to coordinate.
  u64 size[3];
  i64 stride[3];
  i64 out_channel, image_channel, coordinate;
  u64 channels, count;
  u32 rank, mode, padding, align_corners;
  // Where a pixel lies in the output, its sample in the image, and its place in the grid.
  Dims<3> pixels;
};

// The elements along a dimension that a pixel is made of, and their weights.
struct Taps {
  u32 count;
  i64 at[4];
  double weight[4];
  METHOD void add(double place, double last, double share) {
    // What lies outside is no part, nor is what is no number.
    if (!(place >= 0 && place <= last)) return;
    at[count] = (i64)place;
    weight[count++] = share;
  }
};

// A place that was outside moved inside, unless zeros lie there.
DEV double moved(const GridSample& p, double size, double at) {
  const double last = size - 1, low = p.align_corners ? 0 : -0.5, span = p.align_corners ? last : size;
  if (p.padding == ZEROS) return at;
  if (p.padding == REFLECTION) {
    if (span == 0) return at * 0;
    const double away = magnitude_(at - low), rest = fmod_(away, span);
    at = low + (fmod_(floor_(away / span), 2.0) == 1 ? span - rest : rest);
  }
  return at < 0 ? 0 : at > last ? last : at;
}

// The weight of an element so far away (R. Keys, "Cubic convolution interpolation", 1981, with a = -0.75).
DEV double cubic(double d) {
  const double a = -0.75;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

DEV Taps taps_of(const GridSample& p, u32 d, double place) {
  const double size = (double)p.size[d], last = size - 1;
  const double at = p.align_corners ? (place + 1) * (last / 2) : (place + 1) * (size / 2) - 0.5;
  Taps taps;
  taps.count = 0;
  // A place among four is moved by itself, else all of them with the pixel.
  const u32 count = p.mode == NEAREST ? 1 : p.mode == BILINEAR ? 2 : 4;
  const double inside = count == 4 ? at : moved(p, size, at);
  const double first = count == 1 ? round_(inside) : floor_(inside), share = inside - first;
#pragma unroll 1
  for (u32 k = 0; k < count; k++) {
    if (count == 4) {
      taps.add(moved(p, size, first + k - 1), last, cubic(magnitude_(share + 1 - k)));
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
  // Coordinates are those of the last dimension first.
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

#define SAMPLE(name, signature, host, dtypes) dtypes(SAMPLE_ENTRIES, name)
#define SAMPLE_ENTRIES(dtype, T, name) KERNEL(name##_##dtype, GridSample) { sample<T>(p); }

SAMPLE(grid_sample, "TTSSb>T", grid_sample, FLOATS)
