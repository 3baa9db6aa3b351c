// Optimizer steps over lists of tensors (multi-tensor apply): one launch for as many tensors as fit the kernel's
// parameters.
#include "elementwise.cuh"

// Elements per block, and tensors per launch: kernel parameters are limited to 4096 bytes.
const u32 CHUNK = 8192;
const int MOST = 88;

struct Tensors {
  // The number of elements of each tensor, and the cumulative number of chunks at the end of each.
  u64 count[MOST];
  u32 end[MOST];
};

// A value in f64, or the address of one.
struct Number {
  const double* data;
  u64 value;
};
template <class W>
DEV W number(const Number& from) {
  return (W)(from.data == nullptr ? double_of(from.value) : *from.data);
}

// The tensor of this block, and the range of its elements.
struct Chunk {
  u32 tensor;
  u64 first, end;
  METHOD explicit Chunk(const Tensors& all) {
    u32 low = 0, high = MOST - 1;
    while (low < high) {
      const u32 middle = (low + high) / 2;
      if (all.end[middle] > blockIdx.x) high = middle;
      else low = middle + 1;
    }
    tensor = low;
    first = (u64)(blockIdx.x - (low == 0 ? 0 : all.end[low - 1])) * CHUNK;
    end = first + CHUNK < all.count[low] ? first + CHUNK : all.count[low];
  }
};

struct AdamStep {
  Tensors tensors;
  void* parameter[MOST];
  void* mean[MOST];
  void* square[MOST];
  const void* grad[MOST];
  double beta1, beta2, rest1, rest2, decay, shrink;
  Number eps, rate;
};

template <class T>
DEV void adam_step(const AdamStep& p) {
  typedef Wide<T> W;
  typedef Element<T> E;
  const Chunk chunk(p.tensors);
  T* const parameter = static_cast<T*>(p.parameter[chunk.tensor]);
  T* const mean = static_cast<T*>(p.mean[chunk.tensor]);
  T* const square = static_cast<T*>(p.square[chunk.tensor]);
  const T* const grad = static_cast<const T*>(p.grad[chunk.tensor]);
  const W beta1 = (W)p.beta1, beta2 = (W)p.beta2, rest1 = (W)p.rest1, rest2 = (W)p.rest2;
  const W eps = number<W>(p.eps), rate = number<W>(p.rate), decay = (W)p.decay, shrink = (W)p.shrink;
#pragma unroll 4
  for (u64 at = chunk.first + threadIdx.x; at < chunk.end; at += blockDim.x) {
    const W own = E::widen(parameter[at]);
    W g = E::widen(grad[at]);
    // Without weight decay, an infinite parameter must not contribute to its gradient.
    if (decay != 0) g = g + decay * own;
    const W m = beta1 * E::widen(mean[at]) + rest1 * g;
    const W v = beta2 * E::widen(square[at]) + rest2 * g * g;
    parameter[at] = E::narrow(shrink * own - rate * m / (sqrt_(v) + eps));
    mean[at] = E::narrow(m);
    square[at] = E::narrow(v);
  }
}
#define ADAM(dtype, T, name) KERNEL(name##_##dtype, AdamStep) { adam_step<T>(p); }
FLOATS(ADAM, adam_step)
REGISTER(adam_step, "LLLLffTTff>L", adam, FLOATS)

struct SgdStep {
  Tensors tensors;
  void* parameter[MOST];
  void* buffer[MOST];
  const void* grad[MOST];
  // The factors of the momentum buffer, of the gradient added to it, and of the parameter added to it (weight decay).
  double keep, share, decay;
  // The factor of the parameter, and the factors of gradient and buffer that are subtracted from it.
  double shrink, of_grad, of_buffer;
  // Whether there are buffers, whether they have content, and whether the gradient is subtracted from the parameter
  // separately.
  u32 has_buffers, keeps, apart, unused;
};

template <class T>
DEV void sgd_step(const SgdStep& p) {
  typedef Wide<T> W;
  typedef Element<T> E;
  const Chunk chunk(p.tensors);
  T* const parameter = static_cast<T*>(p.parameter[chunk.tensor]);
  T* const buffer = static_cast<T*>(p.buffer[chunk.tensor]);
  const T* const grad = static_cast<const T*>(p.grad[chunk.tensor]);
  const W keep = (W)p.keep, share = (W)p.share, decay = (W)p.decay;
  const W shrink = (W)p.shrink, of_grad = (W)p.of_grad, of_buffer = (W)p.of_buffer;
#pragma unroll 4
  for (u64 at = chunk.first + threadIdx.x; at < chunk.end; at += blockDim.x) {
    W own = E::widen(parameter[at]);
    const W g = E::widen(grad[at]);
    W v = g;
    if (p.keeps) v = keep * E::widen(buffer[at]) + share * g;
    if (decay != 0) v = v + decay * own;
    if (p.apart) own = shrink * own - of_grad * g;
    if (p.has_buffers) {
      own = own - of_buffer * v;
      buffer[at] = E::narrow(v);
    }
    parameter[at] = E::narrow(own);
  }
}
#define SGD(dtype, T, name) KERNEL(name##_##dtype, SgdStep) { sgd_step<T>(p); }
FLOATS(SGD, sgd_step)
REGISTER(sgd_step, "LLLffffbb>L", sgd, FLOATS)
