// A stand-in for libcublasLt.so: implements the cuBLASLt functions that backend-cuda calls, with plain loops on the CPU.
//
// It works with the stand-in for the driver, which is next to it: a product is enqueued on the stream and executed in the
// driver's random order. The caller's obligations are checked: attributes have the right sizes, layouts match each other, a
// leading dimension is at least the column length, an algorithm is used for the problem it was found for, with memory of
// the promised alignment and a workspace of the required size. As in the real library, C is not read if beta is 0, nor A
// and B if alpha is 0. If the caller allows in-place reduction (atomics), the results have different bits each time.
//
// Environment variables configure the library, in addition to those of driver.cpp (KEYWAY_STAND_IN_FAIL and
// KEYWAY_STAND_IN_COUNT also apply to these functions, which fail with an internal error):
//   KEYWAY_STAND_IN_BLAS_VERSION  its version (120901)
//   KEYWAY_STAND_IN_BLAS_LACKS    what has no algorithm: `bias`, the epilogue, or `all`
//   KEYWAY_STAND_IN_BLAS_BREAKS   N, the N-th product loses the device when it is executed
#include "library.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace {
enum Status { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, INTERNAL_ERROR = 14, NOT_SUPPORTED = 15 };
constexpr int ILLEGAL_ADDRESS = 700;
enum Type { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum Compute { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };
enum Epilogue { DEFAULT = 1, BIAS = 4 };
// Bits of the reduction scheme mask: partial sums added in place in the order of completion, and in a workspace.
constexpr unsigned REDUCTION_INPLACE = 1, REDUCTION_COMPUTE_TYPE = 2;
constexpr uint64_t BIAS_ALIGNED = 16, WORKSPACE_ALIGNED = 16;

struct Handle {
  int device;
};
struct Product {
  unsigned compute, scale;
  int32_t transposed[2] = {0, 0};
  uint32_t epilogue = DEFAULT;
  uint64_t bias = 0;
};
struct Layout {
  unsigned type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batches = 1;
  int64_t batch = 0;
  bool operator==(const Layout& other) const {
    return type == other.type && rows == other.rows && columns == other.columns && leading == other.leading &&
           batches == other.batches && batch == other.batch;
  }
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t aligned[4] = {256, 256, 256, 256};
};

// The content of `cublasLtMatmulAlgo_t`.
struct Algorithm {
  uint64_t found_for;
  uint64_t workspace;
  uint32_t splits;
  uint32_t in_any_order;
  uint32_t aligned[4];
  uint32_t rest[6];
};
static_assert(sizeof(Algorithm) == 64, "cublasLtMatmulAlgo_t has 64 bytes");
struct Found {
  Algorithm algorithm;
  size_t workspace;
  unsigned state;
  float waves;
  int reserved[4];
};

#define ENTER(name) ENTER_OR(name, NOT_INITIALIZED, INTERNAL_ERROR)

Status wrong(const char* what) {
  std::fprintf(stderr, "stand-in cuBLASLt: %s\n", what);
  return INVALID_VALUE;
}

Status gone() { return wrong("what is destroyed is not there"); }
// Reads an attribute's value, whose size the caller specifies.
template <class T>
Status set(T& to, const void* value, size_t bytes) {
  if (!value || bytes != sizeof(T)) return wrong("an attribute has another size");
  std::memcpy(&to, value, bytes);
  return OK;
}

bool lacks(const char* what) {
  const char* text = std::getenv("KEYWAY_STAND_IN_BLAS_LACKS");
  return text && std::strcmp(text, what) == 0;
}

size_t bytes_of(unsigned type) { return type == R_64F ? 8 : type == R_32F ? 4 : 2; }

// FNV-1a hash of the parameters of an algorithm.
struct Hash {
  uint64_t value = 1469598103934665603ull;
  template <class T>
  Hash& add(const T& of) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &of, sizeof(T));
    for (unsigned char byte : bytes) value = (value ^ byte) * 1099511628211ull;
    return *this;
  }
};
uint64_t kind_of(const Product& product, const Layout* const (&layouts)[4]) {
  Hash hash;
  hash.add(product.compute).add(product.scale).add(product.transposed).add(product.epilogue);
  for (const Layout* of : layouts) {
    hash.add(of->type).add(of->rows).add(of->columns).add(of->leading).add(of->batches).add(of->batch);
  }
  return hash.value;
}

// Sizes of the result, and terms.
struct Sizes {
  uint64_t m, n, k;
};
Status check(const Product& product, const Layout* const (&layouts)[4], Sizes& sizes) {
  const auto size = [&](int i, bool columns) {
    const Layout& of = *layouts[i];
    return (i < 2 && product.transposed[i]) != columns ? of.columns : of.rows;
  };
  sizes = {size(0, false), size(1, true), size(0, true)};
  if (size(1, false) != sizes.k) return wrong("the sides' terms differ in number");
  for (int i = 2; i < 4; i++)
    if (size(i, false) != sizes.m || size(i, true) != sizes.n) return wrong("C or D has other sizes than the product");
  if (!sizes.m || !sizes.n || !sizes.k) return wrong("a size is 0");
  for (const Layout* of : layouts) {
    if (of->leading < int64_t(of->rows)) return wrong("a leading dimension is below the number of rows");
    if (of->batches < 1 || of->batches > 65535 || of->batches != layouts[3]->batches) return wrong("batches differ");
    if (of->batches > 1 && of->batch < 0) return wrong("a batch stride is below 0");
    if (of->type != layouts[0]->type) return NOT_SUPPORTED;
  }
  const Layout& out = *layouts[3];
  if (out.batches > 1 && out.batch < int64_t((out.columns - 1) * out.leading + out.rows) &&
      out.leading < int64_t((out.batches - 1) * out.batch + out.rows))
    return wrong("matrices of the result overlap");
  const bool wide = layouts[0]->type == R_64F;
  const bool rounds = product.compute == COMPUTE_32F_FAST_TF32 && layouts[0]->type == R_32F;
  if ((!rounds && product.compute != unsigned(wide ? COMPUTE_64F : COMPUTE_32F)) ||
      product.scale != unsigned(wide ? R_64F : R_32F))
    return NOT_SUPPORTED;
  if (product.epilogue != DEFAULT && (product.epilogue != BIAS || wide || lacks("bias"))) return NOT_SUPPORTED;
  return lacks("all") ? NOT_SUPPORTED : OK;
}

// The number of launched products.
uint64_t launches;

struct Work {
  Product product;
  Layout layouts[4];
  Sizes sizes;
  uint64_t at[4];
  double alpha, beta;
  Algorithm algorithm;
  uint64_t workspace;
};

// The number of sums computed concurrently.
constexpr uint64_t TOGETHER = 8;

template <class T, class Acc>
void multiply(const Work& w) {
  const Sizes& s = w.sizes;
  const uint32_t splits = w.algorithm.splits;
  const uint64_t chunk = (s.k + splits - 1) / splits, results = s.m * s.n;
  const Acc alpha = Acc(w.alpha), beta = Acc(w.beta);
  Acc* parts = reinterpret_cast<Acc*>(w.workspace);
  const auto element = [&](int i, int batch, uint64_t row, uint64_t column) {
    const Layout& of = w.layouts[i];
    if (i < 2 && w.product.transposed[i]) std::swap(row, column);
    const int64_t moved = of.batch * batch + int64_t(row) + int64_t(column) * of.leading;
    return reinterpret_cast<T*>(w.at[i]) + moved;
  };
  // The stride between rows of A.
  const int64_t row = w.product.transposed[0] ? w.layouts[0].leading : 1;
  const auto store = [&](int batch, uint64_t i, uint64_t j, Acc sum) {
    Acc made = alpha * sum;
    if (beta != 0) made += beta * Value<T>::of(*element(2, batch, i, j));
    if (w.product.epilogue == BIAS) made += Value<T>::of(reinterpret_cast<const T*>(w.product.bias)[i]);
    *element(3, batch, i, j) = Value<T>::to(made);
  };
  for (int batch = 0; batch < w.layouts[3].batches; batch++) {
    for (uint32_t split = 0; split < splits; split++) {
      const uint64_t begin = split * chunk, end = alpha != 0 ? std::min(s.k, begin + chunk) : begin;
      for (uint64_t at = 0, count; at < results; at += count) {
        // Several results of a column are computed together, so that the additions of different sums do not depend on each
        // other.
        const uint64_t i = at % s.m, j = at / s.m;
        count = std::min(s.m - i, TOGETHER);
        Acc sums[TOGETHER] = {};
        for (uint64_t t = begin; t < end; t++) {
          const T* const left = element(0, batch, i, t);
          const Acc right = factor_of(*element(1, batch, t, j));
          for (uint64_t r = 0; r < count; r++) sums[r] += factor_of(left[r * row]) * right;
        }
        for (uint64_t r = 0; r < count; r++) {
          if (splits > 1) parts[split * results + at + r] = sums[r];
          else store(batch, i + r, j, sums[r]);
        }
      }
    }
    for (uint64_t at = 0; splits > 1 && at < results; at++) {
      Acc sum = 0;
      const uint32_t first = w.algorithm.in_any_order ? uint32_t(launches % splits) : 0;
      for (uint32_t split = 0; split < splits; split++) sum += parts[(first + split) % splits * results + at];
      store(batch, at % s.m, at / s.m, sum);
    }
  }
}

int run(void* data) {
  const Work* const work = static_cast<const Work*>(data);
  static uint64_t products;
  const char* breaks = std::getenv("KEYWAY_STAND_IN_BLAS_BREAKS");
  if (breaks && ++products == std::strtoull(breaks, nullptr, 10)) return ILLEGAL_ADDRESS;
  const auto held = [&](const char* what, uint64_t at, size_t bytes) {
    const bool is = driver()->holds(at, bytes);
    if (!is) std::fprintf(stderr, "stand-in cuBLASLt: %s is no device memory, %zu bytes at %p\n", what, bytes, (void*)at);
    return is;
  };
  const size_t bytes = bytes_of(work->layouts[0].type);
  const char* names[] = {"A", "B", "C", "D"};
  for (int i = 0; i < 4; i++) {
    const Layout& of = work->layouts[i];
    if (i == 2 && work->beta == 0) continue;
    for (int batch = 0; batch < of.batches; batch++) {
      const size_t whole = ((of.columns - 1) * of.leading + of.rows) * bytes;
      if (!held(names[i], work->at[i] + of.batch * batch * bytes, whole)) return ILLEGAL_ADDRESS;
    }
  }
  if (work->product.epilogue == BIAS && !held("the bias", work->product.bias, work->sizes.m * bytes)) return ILLEGAL_ADDRESS;
  if (work->algorithm.workspace && !held("the workspace", work->workspace, work->algorithm.workspace)) return ILLEGAL_ADDRESS;
  switch (work->layouts[0].type) {
    case R_64F: multiply<double, double>(*work); break;
    case R_32F:
      if (work->product.compute == COMPUTE_32F_FAST_TF32) multiply<Tf32, float>(*work);
      else multiply<float, float>(*work);
      break;
    case R_16F: multiply<_Float16, float>(*work); break;
    default: multiply<Bf16, float>(*work);
  }
  return 0;
}
}  // namespace

API size_t cublasLtGetVersion() {
  const char* text = std::getenv("KEYWAY_STAND_IN_BLAS_VERSION");
  return text ? std::strtoull(text, nullptr, 10) : 120901;
}
API const char* cublasLtGetStatusName(unsigned status) {
  switch (status) {
    case OK: return "CUBLAS_STATUS_SUCCESS";
    case NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "unrecognized status";
  }
}
API const char* cublasLtGetStatusString(unsigned status) {
  return status == INTERNAL_ERROR ? "an internal operation failed" : cublasLtGetStatusName(status);
}
API int cublasLtCreate(void** handle) {
  ENTER(cublasLtCreate)
  const int device = driver()->device();
  if (device < 0) return NOT_INITIALIZED;
  *handle = make(Handle{device});
  return OK;
}
API int cublasLtMatmulDescCreate(void** made, unsigned compute, unsigned scale) {
  ENTER(cublasLtMatmulDescCreate)
  Product product;
  product.compute = compute;
  product.scale = scale;
  *made = make(product);
  return OK;
}
API int cublasLtMatmulDescSetAttribute(void* of, unsigned which, const void* value, size_t bytes) {
  ENTER(cublasLtMatmulDescSetAttribute)
  if (!live.count(of)) return wrong("a descriptor is not there");
  Product& product = *static_cast<Product*>(of);
  switch (which) {
    case 3: return set(product.transposed[0], value, bytes);
    case 4: return set(product.transposed[1], value, bytes);
    case 7: return set(product.epilogue, value, bytes);
    case 8: return set(product.bias, value, bytes);
    default: return wrong("an attribute of a product is unknown");
  }
}
API int cublasLtMatmulDescDestroy(void* of) {
  ENTER(cublasLtMatmulDescDestroy)
  return destroy<Product>(of) ? OK : gone();
}
API int cublasLtMatrixLayoutCreate(void** made, unsigned type, uint64_t rows, uint64_t columns, int64_t leading) {
  ENTER(cublasLtMatrixLayoutCreate)
  Layout layout;
  layout.type = type;
  layout.rows = rows;
  layout.columns = columns;
  layout.leading = leading;
  *made = make(layout);
  return OK;
}
API int cublasLtMatrixLayoutSetAttribute(void* of, unsigned which, const void* value, size_t bytes) {
  ENTER(cublasLtMatrixLayoutSetAttribute)
  if (!live.count(of)) return wrong("a layout is not there");
  Layout& layout = *static_cast<Layout*>(of);
  switch (which) {
    case 5: return set(layout.batches, value, bytes);
    case 6: return set(layout.batch, value, bytes);
    default: return wrong("an attribute of a layout is unknown");
  }
}
API int cublasLtMatrixLayoutDestroy(void* of) {
  ENTER(cublasLtMatrixLayoutDestroy)
  return destroy<Layout>(of) ? OK : gone();
}
API int cublasLtMatmulPreferenceCreate(void** made) {
  ENTER(cublasLtMatmulPreferenceCreate)
  *made = make(Preference());
  return OK;
}
API int cublasLtMatmulPreferenceSetAttribute(void* of, unsigned which, const void* value, size_t bytes) {
  ENTER(cublasLtMatmulPreferenceSetAttribute)
  if (!live.count(of)) return wrong("a preference is not there");
  Preference& preference = *static_cast<Preference*>(of);
  switch (which) {
    case 1: return set(preference.workspace, value, bytes);
    case 3: return set(preference.reductions, value, bytes);
    case 5: case 6: case 7: case 8: return set(preference.aligned[which - 5], value, bytes);
    default: return wrong("an attribute of a preference is unknown");
  }
}
API int cublasLtMatmulPreferenceDestroy(void* of) {
  ENTER(cublasLtMatmulPreferenceDestroy)
  return destroy<Preference>(of) ? OK : gone();
}
API int cublasLtMatmulAlgoGetHeuristic(void* handle, void* of, void* a, void* b, void* c, void* d, void* preference,
                                       int wanted, Found* found, int* count) {
  ENTER(cublasLtMatmulAlgoGetHeuristic)
  for (const void* used : {handle, of, a, b, c, d, preference})
    if (!live.count(used)) return wrong("what the heuristic is asked about is not there");
  if (wanted < 1 || !found || !count) return wrong("no algorithm is wanted");
  const Product& product = *static_cast<Product*>(of);
  const Layout* const layouts[4] = {static_cast<Layout*>(a), static_cast<Layout*>(b), static_cast<Layout*>(c),
                                    static_cast<Layout*>(d)};
  const Preference& prefers = *static_cast<Preference*>(preference);
  *count = 0;
  Sizes sizes;
  if (const Status status = check(product, layouts, sizes)) return status;
  Algorithm algorithm{};
  algorithm.found_for = kind_of(product, layouts);
  algorithm.splits = 1;
  for (int i = 0; i < 4; i++) {
    algorithm.aligned[i] = prefers.aligned[i];
    if (prefers.aligned[i] % bytes_of(layouts[i]->type)) return wrong("elements are not aligned");
  }
  // Few results with many addends use split-k if the workspace is large enough.
  const uint64_t part = sizes.m * sizes.n * (product.compute == COMPUTE_64F ? 8 : 4);
  const uint64_t splits = sizes.k / 64 < 4 ? sizes.k / 64 : 4;
  if (splits > 1 && part * splits <= prefers.workspace && (prefers.reductions & REDUCTION_COMPUTE_TYPE)) {
    algorithm.splits = uint32_t(splits);
    algorithm.workspace = part * splits;
    algorithm.in_any_order = (prefers.reductions & REDUCTION_INPLACE) != 0;
  }
  found[0] = Found{algorithm, size_t(algorithm.workspace), OK, 1.0f, {}};
  *count = 1;
  return OK;
}
API int cublasLtMatmul(void* handle, void* of, const void* alpha, const void* a, void* a_layout, const void* b,
                       void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                       const Algorithm* algorithm, void* workspace, size_t workspace_bytes, void* stream) {
  ENTER(cublasLtMatmul)
  for (const void* used : {static_cast<const void*>(handle), static_cast<const void*>(of), static_cast<const void*>(a_layout),
                           static_cast<const void*>(b_layout), static_cast<const void*>(c_layout),
                           static_cast<const void*>(d_layout)})
    if (!live.count(used)) return wrong("what a product is made with is not there");
  if (static_cast<Handle*>(handle)->device != driver()->device()) return wrong("another device's context is current");
  auto work = std::make_unique<Work>();
  work->product = *static_cast<Product*>(of);
  const Layout* const layouts[4] = {static_cast<Layout*>(a_layout), static_cast<Layout*>(b_layout),
                                    static_cast<Layout*>(c_layout), static_cast<Layout*>(d_layout)};
  if (const Status status = check(work->product, layouts, work->sizes)) return status;
  if (!alpha || !beta || !algorithm) return wrong("a factor or the algorithm is missing");
  if (algorithm->found_for != kind_of(work->product, layouts)) return wrong("the algorithm was found for another product");
  const bool wide = work->product.scale == R_64F;
  work->alpha = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  work->beta = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  const void* at[4] = {a, b, c, d};
  for (int i = 0; i < 4; i++) {
    work->layouts[i] = *layouts[i];
    work->at[i] = uint64_t(at[i]);
    if (i == 2 && work->beta == 0) continue;
    for (int batch = 0; batch < layouts[i]->batches; batch++) {
      const uint64_t own = work->at[i] + layouts[i]->batch * batch * bytes_of(layouts[i]->type);
      if (!own || own % algorithm->aligned[i]) return wrong("a matrix is not aligned as was promised");
    }
  }
  if (c == d && !(*layouts[2] == *layouts[3])) return wrong("C and D are one matrix with two layouts");
  if (work->product.epilogue == BIAS && (!work->product.bias || work->product.bias % BIAS_ALIGNED))
    return wrong("the bias is missing or not aligned");
  if (workspace_bytes < algorithm->workspace || (algorithm->workspace && (!workspace || uint64_t(workspace) % WORKSPACE_ALIGNED)))
    return wrong("the workspace is too small or not aligned");
  work->algorithm = *algorithm;
  work->workspace = uint64_t(workspace);
  launches++;
  const auto drop = [](void* data) { delete static_cast<Work*>(data); };
  return driver()->give(stream, run, work.release(), drop) ? EXECUTION_FAILED : OK;
}
