// Kernels whose results are known, in every order of threads; `tests/shim.rs` runs this program.
#include "../../../backend-cuda/kernels/keyway.cuh"
#include <cstdio>

extern "C" bool shim_launch(const ShimKernel*, ShimIndex, ShimIndex, const void*, unsigned long long);

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

int main() {
  i64 in[1024], out[1024];
  for (int i = 0; i < 1024; i++) in[i] = i * 7 % 31;
  int racy_right = 0;
  for (unsigned long long seed = 0; seed < 12; seed++) {
    Arguments arguments{out, in, 1000};
    if (!shim_launch(&sum_shim, {4, 1, 1}, {256, 1, 1}, &arguments, seed)) return 1;
    for (int block = 0; block < 4; block++) {
      i64 expected = 0;
      for (int i = block * 256; i < (block + 1) * 256 && i < 1000; i++) expected += in[i];
      if (out[block] != expected) return std::printf("sum %d: %lld, not %lld\n", block, out[block], expected), 1;
    }
    if (!shim_launch(&scan_shim, {1, 1, 1}, {96, 1, 1}, &arguments, seed)) return 1;
    for (int warp = 0; warp < 2; warp++) {
      i64 sum = 0, odd = 0;
      for (int i = 0; i < 32; i++) odd += (sum += in[warp * 32 + i]) % 2;
      sum = 0;
      for (int i = 0; i < 32; i++) {
        sum += in[warp * 32 + i];
        if (out[warp * 32 + i] != sum * 100 + odd) return std::printf("scan %d: %lld\n", i, out[warp * 32 + i]), 1;
      }
    }
    if (!shim_launch(&racy_shim, {1, 1, 1}, {128, 1, 1}, &arguments, seed)) return 1;
    bool right = true;
    for (int i = 0; i < 128; i++) right = right && out[i] == in[127 - i];
    racy_right += right;
  }
  std::printf("racy was right %d times of 12\n", racy_right);
  return racy_right == 0 ? 0 : 1;
}
