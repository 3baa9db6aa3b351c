// Kernels with known results, in every order of threads; `tests/shim.rs` runs this program.
#include "../../../backend-cuda/kernels/tensor.cuh"
#include <cstdio>

extern "C" bool shim_launch(const ShimKernel*, ShimIndex, ShimIndex, unsigned, const void*, unsigned long long);

struct Arguments {
  i64* out;
  const i64* in;
  u32 count;
};

// The sum of a block by exchanges within warps, then by shared memory.
KERNEL(sum, Arguments) {
  SHARED(i64, warps, 32);
  const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
  i64 own = at < p.count ? p.in[at] : 0;
  for (int half = 16; half > 0; half /= 2) own += __shfl_xor_sync(0xffffffff, own, half);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    i64 all = 0;
    for (u32 w = 0; w < blockDim.x / 32; w++) all += warps[w];
    p.out[blockIdx.x] = all;
  }
}

// An inclusive scan of a warp; some threads end before it.
KERNEL(scan, Arguments) {
  if (threadIdx.x >= 64) return;
  i64 own = p.in[threadIdx.x];
  for (u32 step = 1; step < 32; step *= 2) {
    const i64 before = __shfl_up_sync(0xffffffff, own, step);
    if (threadIdx.x % 32 >= step) own += before;
  }
  const u32 odd = __ballot_sync(0xffffffff, own % 2 != 0);
  p.out[threadIdx.x] = own * 100 + __popc(odd);
}

// The barrier between writing and reading is missing.
KERNEL(racy, Arguments) {
  SHARED(i64, shared, 128);
  shared[threadIdx.x] = p.in[threadIdx.x];
  p.out[threadIdx.x] = shared[127 - threadIdx.x];
}

struct MatrixArguments {
  float* out;
  const u16* left;
  const u16* right;
  u32 left_turned, right_turned, waits;
};

// A product of 16 x 16 and 16 x 16 elements by one warp of a block of four, which copy the operands asynchronously. A
// transposed operand is stored along k.
template <class T>
DEV void multiply_once(const MatrixArguments& p) {
  SHARED(u16, left, 16 * 24);
  SHARED(u16, right, 16 * 24);
  const u32 row = threadIdx.x % 32 / 2, half = threadIdx.x % 2 * 8;
  if (threadIdx.x < 32) copy_16(left + row * 24 + half, p.left + row * 16 + half, 16);
  else if (threadIdx.x < 64) copy_16(right + row * 24 + half, p.right + row * 16 + half, 16);
  copies_begun();
  if (p.waits) copies_arrived<0>();
  __syncthreads();
  LeftPart a;
  RightPart b[2];
  load_left<24>(a, left, p.left_turned);
  load_right<24>(b, right, p.right_turned);
  Sums sums[2] = {};
  for (int n = 0; n < 2; n++) Cores<T>::add(sums[n], a, b[n]);
  const u32 lane = threadIdx.x % 32;
  if (threadIdx.x >= 32) return;
  for (u32 i = 0; i < 8; i++) {
    p.out[(lane / 4 + i % 4 / 2 * 8) * 16 + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i / 4].of[i % 4];
  }
}
KERNEL(multiply_f16, MatrixArguments) { multiply_once<f16>(p); }
KERNEL(multiply_bf16, MatrixArguments) { multiply_once<bf16>(p); }

// The number of products on tensor cores that differ from those of a loop.
template <class T>
int wrong_products(const ShimKernel& kernel, unsigned long long seed, bool waits) {
  alignas(16) u16 left[256], right[256];
  float out[256];
  int wrong = 0;
  for (u32 turned = 0; turned < 4; turned++) {
    for (int i = 0; i < 256; i++) {
      left[i] = Element<T>::narrow(float(i * 37 % 101) / 16 - 3).bits;
      right[i] = Element<T>::narrow(float(i * 53 % 97) / 8 - 5).bits;
    }
    MatrixArguments arguments{out, left, right, turned & 1, turned >> 1, waits};
    if (!shim_launch(&kernel, {1, 1, 1}, {128, 1, 1}, 0, &arguments, seed)) return 256;
    for (int row = 0; row < 16; row++) {
      for (int column = 0; column < 16; column++) {
        float sum = 0;
        for (int k = 0; k < 16; k++) {
          const u16 a = left[turned & 1 ? k * 16 + row : row * 16 + k];
          const u16 b = right[turned >> 1 ? k * 16 + column : column * 16 + k];
          sum += Element<T>::widen(T{a}) * Element<T>::widen(T{b});
        }
        wrong += !(out[row * 16 + column] == sum);
      }
    }
  }
  return wrong;
}

int main() {
  i64 in[1024], out[1024];
  for (int i = 0; i < 1024; i++) in[i] = i * 7 % 31;
  int racy_right = 0;
  for (unsigned long long seed = 0; seed < 12; seed++) {
    Arguments arguments{out, in, 1000};
    if (!shim_launch(&sum_shim, {4, 1, 1}, {256, 1, 1}, 0, &arguments, seed)) return 1;
    for (int block = 0; block < 4; block++) {
      i64 expected = 0;
      for (int i = block * 256; i < (block + 1) * 256 && i < 1000; i++) expected += in[i];
      if (out[block] != expected) return std::printf("sum %d: %lld, not %lld\n", block, out[block], expected), 1;
    }
    if (!shim_launch(&scan_shim, {1, 1, 1}, {96, 1, 1}, 0, &arguments, seed)) return 1;
    for (int warp = 0; warp < 2; warp++) {
      i64 sum = 0, odd = 0;
      for (int i = 0; i < 32; i++) odd += (sum += in[warp * 32 + i]) % 2;
      sum = 0;
      for (int i = 0; i < 32; i++) {
        sum += in[warp * 32 + i];
        if (out[warp * 32 + i] != sum * 100 + odd) return std::printf("scan %d: %lld\n", i, out[warp * 32 + i]), 1;
      }
    }
    if (!shim_launch(&racy_shim, {1, 1, 1}, {128, 1, 1}, 0, &arguments, seed)) return 1;
    bool right = true;
    for (int i = 0; i < 128; i++) right = right && out[i] == in[127 - i];
    racy_right += right;
    const int wrong = wrong_products<f16>(multiply_f16_shim, seed, true) + wrong_products<bf16>(multiply_bf16_shim, seed, true);
    if (wrong != 0) return std::printf("%d elements of products by tensor cores\n", wrong), 1;
    // Copied data is not visible before it is waited for.
    if (wrong_products<f16>(multiply_f16_shim, seed, false) < 512) return std::printf("copies came too early\n"), 1;
  }
  std::printf("racy was right %d times of 12\n", racy_right);
  return racy_right == 0 ? 0 : 1;
}
