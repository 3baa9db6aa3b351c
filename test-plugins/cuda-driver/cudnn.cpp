// A stand-in for libcudnn.so: implements the functions of cuDNN's graph API that backend-cuda calls, with plain loops on
// the CPU.
//
// It works with the stand-in for the driver, which is next to it: a convolution is enqueued on the handle's stream and
// executed in the driver's random order. The caller's obligations are checked: attributes belong to their descriptor, have
// the right type and count and are set before the descriptor is finalized, required attributes are set, sizes match each
// other, memory has the promised alignment and the workspace exists. Its heuristic also returns engines that a careful
// caller rejects, before the acceptable ones, and their results are wrong: one is non-deterministic, one has reduced
// precision, one has an unknown note, one is compiled at run time, one has no valid plan, one needs a workspace larger than
// any memory.
//
// Environment variables configure the library, in addition to those of driver.cpp (KEYWAY_STAND_IN_FAIL and
// KEYWAY_STAND_IN_COUNT also apply to these functions, which fail with an internal error):
//   KEYWAY_STAND_IN_DNN_VERSION  its version (90501)
//   KEYWAY_STAND_IN_DNN_CUDA     the version of CUDA that it is built for (12090)
//   KEYWAY_STAND_IN_DNN_LACKS    what has no engine: `best`, the result of the first heuristic, or `all`
//   KEYWAY_STAND_IN_DNN_BREAKS   N, the N-th convolution loses the device when it is executed
#include "library.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace {
enum Status {
  OK = 0, NOT_INITIALIZED = 1001, BAD_PARAM = 2000, NOT_FINALIZED = 2004, NOT_SUPPORTED = 3000, INTERNAL_ERROR = 4000,
  EXECUTION_FAILED = 5000
};
constexpr int ILLEGAL_ADDRESS = 700;
enum Kind {
  CONVOLUTION = 1, ENGINE = 2, CONFIGURATION = 3, HEURISTIC = 4, PLAN = 5, FORWARD = 10, BACKWARD_FILTER = 11, BACKWARD_DATA = 12,
  GRAPH = 15, PACK = 16, TENSOR = 17
};
enum Type { HANDLE = 0, DATA_TYPE = 1, INT64 = 3, FLOAT = 4, POINTER = 6, MODE = 7, HEURISTIC_MODE = 8, NOTE = 11, DESCRIPTOR = 15, BEHAVIOR = 19 };
enum Data { F32 = 0, F16 = 2, BF16 = 9 };
enum Note { TENSOR_CORE = 0, DOWN_CONVERT_INPUTS = 1, NONDETERMINISTIC = 4, WINOGRAD = 5, STRICT_NAN = 9, UNKNOWN = 77 };
enum Mode { FALLBACK = 2, BEST = 3 };
enum Engine { OTHER_BITS, FEWER_DIGITS, OF_LATER, COMPILED, IMPOSSIBLE, HUGE_WORKSPACE, CORES, PLAIN };

size_t bytes_of(int type) {
  switch (type) {
    case HANDLE: case POINTER: case DESCRIPTOR: case INT64: return 8;
    default: return 4;
  }
}

// The attributes that may be set: number, owning descriptor type, type, and minimum and maximum count.
struct Rule {
  int kind, type, least, most;
};
const std::map<unsigned, Rule> RULES = {
    {100, {CONVOLUTION, DATA_TYPE, 1, 1}}, {101, {CONVOLUTION, MODE, 1, 1}},  {102, {CONVOLUTION, INT64, 2, 3}},
    {103, {CONVOLUTION, INT64, 2, 3}},     {104, {CONVOLUTION, INT64, 2, 3}}, {105, {CONVOLUTION, INT64, 2, 3}},
    {106, {CONVOLUTION, INT64, 1, 1}},     {200, {HEURISTIC, HEURISTIC_MODE, 1, 1}}, {201, {HEURISTIC, DESCRIPTOR, 1, 1}},
    {400, {PLAN, HANDLE, 1, 1}},           {401, {PLAN, DESCRIPTOR, 1, 1}},   {700, {FORWARD, FLOAT, 1, 1}},
    {701, {FORWARD, FLOAT, 1, 1}},         {702, {FORWARD, DESCRIPTOR, 1, 1}}, {703, {FORWARD, DESCRIPTOR, 1, 1}},
    {704, {FORWARD, DESCRIPTOR, 1, 1}},    {705, {FORWARD, DESCRIPTOR, 1, 1}}, {706, {BACKWARD_DATA, FLOAT, 1, 1}},
    {707, {BACKWARD_DATA, FLOAT, 1, 1}},   {708, {BACKWARD_DATA, DESCRIPTOR, 1, 1}}, {709, {BACKWARD_DATA, DESCRIPTOR, 1, 1}},
    {710, {BACKWARD_DATA, DESCRIPTOR, 1, 1}}, {711, {BACKWARD_DATA, DESCRIPTOR, 1, 1}}, {712, {BACKWARD_FILTER, FLOAT, 1, 1}},
    {713, {BACKWARD_FILTER, FLOAT, 1, 1}}, {714, {BACKWARD_FILTER, DESCRIPTOR, 1, 1}}, {715, {BACKWARD_FILTER, DESCRIPTOR, 1, 1}},
    {716, {BACKWARD_FILTER, DESCRIPTOR, 1, 1}}, {717, {BACKWARD_FILTER, DESCRIPTOR, 1, 1}}, {800, {GRAPH, HANDLE, 1, 1}},
    {801, {GRAPH, DESCRIPTOR, 1, 1}},      {900, {TENSOR, INT64, 1, 1}},      {901, {TENSOR, DATA_TYPE, 1, 1}},
    {902, {TENSOR, INT64, 4, 5}},          {903, {TENSOR, INT64, 4, 5}},      {906, {TENSOR, INT64, 1, 1}},
    {1000, {PACK, INT64, 3, 3}},           {1001, {PACK, POINTER, 3, 3}},     {1003, {PACK, POINTER, 1, 1}},
};

struct Handle {
  int device;
  void* stream;
};
struct Descriptor {
  int kind;
  bool is_final = false;
  std::map<unsigned, std::vector<unsigned char>> values;
  // The descriptor that a configuration, an engine or a plan refers to.
  const Descriptor* graph = nullptr;
  int engine = -1;

  template <class T>
  std::vector<T> all(unsigned which) const {
    const auto found = values.find(which);
    if (found == values.end()) return {};
    std::vector<T> made(found->second.size() / sizeof(T));
    std::memcpy(made.data(), found->second.data(), made.size() * sizeof(T));
    return made;
  }
  template <class T>
  T one(unsigned which) const { return all<T>(which).at(0); }
  const Descriptor& to(unsigned which) const { return *one<const Descriptor*>(which); }
};

thread_local char last[200];
Status wrong(Status status, const char* what) {
  std::snprintf(last, sizeof last, "%s", what);
  if (status == BAD_PARAM || status == NOT_FINALIZED) std::fprintf(stderr, "stand-in cuDNN: %s\n", what);
  return status;
}
// Refused without a message on the terminal, since the real library may refuse it too.
Status lacking(const char* what) { return wrong(NOT_SUPPORTED, what); }

bool lacks(const char* what) {
  const char* text = std::getenv("KEYWAY_STAND_IN_DNN_LACKS");
  return text && std::strcmp(text, what) == 0;
}
unsigned long long setting(const char* name, unsigned long long otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The attribute numbers of an operation: scale factors, strides and padding, and input, kernel and result.
struct Names {
  unsigned beta, moves, image[3];
};
Names names_of(int kind) {
  switch (kind) {
    case FORWARD: return {701, 702, {704, 703, 705}};
    case BACKWARD_DATA: return {707, 708, {710, 709, 711}};
    default: return {713, 714, {716, 715, 717}};
  }
}

struct Image {
  int64_t sizes[5], strides[5], alignment, name;
  int type;
};
Image image_of(const Descriptor& of) {
  Image made{};
  const auto sizes = of.all<int64_t>(902), strides = of.all<int64_t>(903);
  for (size_t d = 0; d < 5; d++) {
    // The spatial dimension that is missing is the first.
    const size_t own = d < 2 ? d : d + sizes.size() - 5;
    const bool is_there = d < 2 || d + sizes.size() >= 7;
    made.sizes[d] = is_there ? sizes[own] : 1;
    made.strides[d] = is_there ? strides[own] : 0;
  }
  made.alignment = of.one<int64_t>(900);
  made.name = of.one<int64_t>(906);
  made.type = of.one<int>(901);
  return made;
}

struct Work {
  int kind, engine;
  bool adds;
  Image image[3];
  int64_t stride[3], padding[3], dilation[3];
  uint64_t at[3], workspace;
};
void three(const Descriptor& moves, unsigned which, int64_t otherwise, int64_t (&to)[3]) {
  const auto list = moves.all<int64_t>(which);
  for (size_t d = 0; d < 3; d++) to[d] = d + list.size() >= 3 ? list[d + list.size() - 3] : otherwise;
}
Work work_of(const Descriptor& operation) {
  Work work{};
  const Names names = names_of(operation.kind);
  work.kind = operation.kind;
  work.adds = operation.one<float>(names.beta) != 0;
  for (int i = 0; i < 3; i++) work.image[i] = image_of(operation.to(names.image[i]));
  const Descriptor& moves = operation.to(names.moves);
  three(moves, 102, 1, work.dilation);
  three(moves, 103, 1, work.stride);
  three(moves, 104, 0, work.padding);
  return work;
}
int made_by(const Work& work) { return work.kind == FORWARD ? 2 : work.kind == BACKWARD_DATA ? 0 : 1; }

Status check(const Descriptor& operation) {
  const Names names = names_of(operation.kind);
  for (const unsigned which : names.image)
    if (operation.to(which).kind != TENSOR) return wrong(BAD_PARAM, "what an operation is of is no tensor");
  const Descriptor& moves = operation.to(names.moves);
  if (moves.kind != CONVOLUTION) return wrong(BAD_PARAM, "how an operation moves is no convolution");
  const float beta = operation.one<float>(names.beta), alpha = operation.one<float>(names.beta - 1);
  if (alpha != 1 || (beta != 0 && beta != 1)) return lacking("a factor");
  const size_t spatial = size_t(moves.one<int64_t>(106));
  for (unsigned which : {102u, 103u, 104u, 105u})
    if (moves.all<int64_t>(which).size() != spatial) return wrong(BAD_PARAM, "a list has another number of dimensions");
  if (moves.all<int64_t>(104) != moves.all<int64_t>(105)) return lacking("padding of two widths");
  if (moves.one<int>(101) != 1 || moves.one<int>(100) != F32) return wrong(BAD_PARAM, "not a correlation that is summed in f32");
  for (const unsigned which : names.image)
    if (operation.to(which).all<int64_t>(902).size() != spatial + 2) return wrong(BAD_PARAM, "an image has other dimensions");
  const Work work = work_of(operation);
  const Image &x = work.image[0], &w = work.image[1], &y = work.image[2];
  if (x.name == w.name || w.name == y.name || x.name == y.name) return wrong(BAD_PARAM, "two tensors have one name");
  if (x.type != w.type || w.type != y.type) return lacking("two types");
  if (x.sizes[0] != y.sizes[0] || w.sizes[0] != y.sizes[1] || x.sizes[1] % w.sizes[1] || w.sizes[0] % (x.sizes[1] / w.sizes[1]))
    return wrong(BAD_PARAM, "samples, channels or groups do not fit");
  for (int d = 0; d < 3; d++) {
    const int64_t reach = x.sizes[d + 2] + 2 * work.padding[d] - work.dilation[d] * (w.sizes[d + 2] - 1) - 1;
    if (work.stride[d] < 1 || reach < 0 || reach / work.stride[d] + 1 != y.sizes[d + 2]) return wrong(BAD_PARAM, "places do not fit");
  }
  // Like the real library, this one requires dense images in the same memory format.
  bool fits[2] = {true, true};
  for (const Image& of : work.image) {
    const int orders[2][5] = {{4, 3, 2, 1, 0}, {1, 4, 3, 2, 0}};
    for (int order = 0; order < 2; order++) {
      int64_t next = 1;
      for (const int d : orders[order]) {
        fits[order] &= of.sizes[d] == 1 || of.strides[d] == next;
        next *= of.sizes[d];
      }
    }
  }
  return fits[0] || fits[1] ? OK : lacking("images of two orders");
}

// The notes of an engine for elements of a type.
std::vector<int> notes_of(int engine, int type) {
  switch (engine) {
    case OTHER_BITS: return {NONDETERMINISTIC};
    case FEWER_DIGITS: return {WINOGRAD};
    case OF_LATER: return {UNKNOWN};
    case CORES: return type == F32 ? std::vector<int>{TENSOR_CORE, DOWN_CONVERT_INPUTS} : std::vector<int>{TENSOR_CORE};
    default: return {STRICT_NAN};
  }
}
constexpr int64_t WORKSPACE = 1024;

int64_t count_of(const Image& of) { return of.sizes[0] * of.sizes[1] * of.sizes[2] * of.sizes[3] * of.sizes[4]; }

template <class T, class Stored>
void convolve(const Work& work) {
  const Image &x = work.image[0], &w = work.image[1], &y = work.image[2];
  const int made = made_by(work);
  // Images are dense: the values of the two inputs, and the sums of the output, in memory order.
  std::vector<float> numbers[3];
  for (int i = 0; i < 3; i++) {
    numbers[i].assign(size_t(count_of(work.image[i])), 0.0f);
    for (size_t at = 0; i != made && at < numbers[i].size(); at++) {
      T value;
      std::memcpy(&value, reinterpret_cast<const Stored*>(work.at[i]) + at, sizeof(T));
      numbers[i][at] = factor_of(value);
    }
  }
  const auto place = [](const Image& of, const int64_t (&c)[3]) {
    return c[0] * of.strides[2] + c[1] * of.strides[3] + c[2] * of.strides[4];
  };
  const auto split = [](const Image& of, int64_t at, int64_t (&to)[3]) {
    to[0] = at / (of.sizes[3] * of.sizes[4]);
    to[1] = at / of.sizes[4] % of.sizes[3];
    to[2] = at % of.sizes[4];
  };
  const int64_t per_group = w.sizes[0] / (x.sizes[1] / w.sizes[1]);
  // For one output element, the pairs of kernel and input elements that are multiplied.
  std::vector<std::pair<int64_t, int64_t>> meet;
  for (int64_t at = 0; at < y.sizes[2] * y.sizes[3] * y.sizes[4]; at++) {
    int64_t out[3], t[3], in[3];
    split(y, at, out);
    meet.clear();
    for (int64_t tap = 0; tap < w.sizes[2] * w.sizes[3] * w.sizes[4]; tap++) {
      split(w, tap, t);
      bool is_inside = true;
      for (int d = 0; d < 3; d++) {
        in[d] = out[d] * work.stride[d] - work.padding[d] + t[d] * work.dilation[d];
        is_inside &= in[d] >= 0 && in[d] < x.sizes[d + 2];
      }
      if (is_inside) meet.emplace_back(place(w, t), place(x, in));
    }
    const int64_t of_place = place(y, out);
    for (int64_t n = 0; n < y.sizes[0]; n++)
      for (int64_t k = 0; k < y.sizes[1]; k++) {
        float& result = numbers[2][size_t(n * y.strides[0] + k * y.strides[1] + of_place)];
        for (int64_t c = 0; c < w.sizes[1]; c++) {
          const int64_t of_kernel = k * w.strides[0] + c * w.strides[1];
          const int64_t of_input = n * x.strides[0] + (k / per_group * w.sizes[1] + c) * x.strides[1];
          for (const auto& [own, other] : meet) {
            float &weight = numbers[1][size_t(of_kernel + own)], &input = numbers[0][size_t(of_input + other)];
            if (made == 2) result += input * weight;
            else if (made == 1) weight += input * result;
            else input += weight * result;
          }
        }
      }
  }
  Stored* const to = reinterpret_cast<Stored*>(work.at[made]);
  for (size_t at = 0; at < numbers[made].size(); at++) {
    float value = numbers[made][at];
    if (work.adds) value += Value<Stored>::of(to[at]);
    // The results of the engines whose notes say that they are unacceptable.
    if (work.engine < CORES) value += 1;
    to[at] = Value<Stored>::to(value);
  }
}

int run(void* data) {
  const Work& work = *static_cast<const Work*>(data);
  static uint64_t convolutions;
  if (++convolutions == setting("KEYWAY_STAND_IN_DNN_BREAKS", 0)) return ILLEGAL_ADDRESS;
  const char* names[] = {"the input", "the kernel", "the result"};
  const size_t bytes = work.image[0].type == F32 ? 4 : 2;
  for (int i = 0; i < 3; i++) {
    const size_t whole = size_t(count_of(work.image[i])) * bytes;
    if (driver()->holds(work.at[i], whole)) continue;
    std::fprintf(stderr, "stand-in cuDNN: %s is no device memory, %zu bytes at %p\n", names[i], whole, (void*)work.at[i]);
    return ILLEGAL_ADDRESS;
  }
  if (!driver()->holds(work.workspace, WORKSPACE)) {
    std::fprintf(stderr, "stand-in cuDNN: the workspace is no device memory\n");
    return ILLEGAL_ADDRESS;
  }
  std::memset(reinterpret_cast<void*>(work.workspace), 0xff, WORKSPACE);
  switch (work.image[0].type) {
    case F32: work.engine == CORES ? convolve<Tf32, float>(work) : convolve<float, float>(work); break;
    case F16: convolve<_Float16, _Float16>(work); break;
    default: convolve<Bf16, Bf16>(work);
  }
  return 0;
}

#define ENTER(name) ENTER_OR(name, NOT_INITIALIZED, wrong(INTERNAL_ERROR, "an internal operation failed"))
#define FIND(name, handle)                                                          \
  if (!live.count(handle)) return wrong(BAD_PARAM, "a descriptor is not there"); \
  Descriptor& name = *static_cast<Descriptor*>(handle);
}  // namespace

API size_t cudnnGetVersion() { return size_t(setting("KEYWAY_STAND_IN_DNN_VERSION", 90501)); }
API size_t cudnnGetCudartVersion() { return size_t(setting("KEYWAY_STAND_IN_DNN_CUDA", 12090)); }
API const char* cudnnGetErrorString(unsigned status) {
  switch (status) {
    case OK: return "CUDNN_STATUS_SUCCESS";
    case NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case NOT_FINALIZED: return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case INTERNAL_ERROR: return "CUDNN_STATUS_INTERNAL_ERROR";
    case EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "CUDNN_UNKNOWN_STATUS";
  }
}
API void cudnnGetLastErrorString(char* to, size_t most) {
  std::snprintf(to, most, "%s", last);
  last[0] = 0;
}
API int cudnnCreate(void** handle) {
  ENTER(cudnnCreate)
  const int device = driver()->device();
  if (device < 0) return NOT_INITIALIZED;
  *handle = make(Handle{device, nullptr});
  return OK;
}
API int cudnnSetStream(void* handle, void* stream) {
  ENTER(cudnnSetStream)
  if (!live.count(handle)) return wrong(BAD_PARAM, "a handle is not there");
  static_cast<Handle*>(handle)->stream = stream;
  return OK;
}
API int cudnnBackendCreateDescriptor(unsigned kind, void** made) {
  ENTER(cudnnBackendCreateDescriptor)
  bool is_known = kind == ENGINE || kind == CONFIGURATION;
  for (const auto& rule : RULES) is_known |= rule.second.kind == int(kind);
  if (!is_known) return wrong(BAD_PARAM, "a kind of descriptor is unknown");
  Descriptor of;
  of.kind = int(kind);
  *made = make(of);
  return OK;
}
API int cudnnBackendDestroyDescriptor(void* of) {
  ENTER(cudnnBackendDestroyDescriptor)
  return destroy<Descriptor>(of) ? OK : wrong(BAD_PARAM, "what is destroyed is not there");
}
API int cudnnBackendSetAttribute(void* handle, unsigned which, unsigned type, int64_t count, const void* values) {
  ENTER(cudnnBackendSetAttribute)
  FIND(of, handle)
  if (of.is_final) return wrong(BAD_PARAM, "an attribute is set after the end");
  const auto rule = RULES.find(which);
  if (rule == RULES.end() || rule->second.kind != of.kind) return wrong(BAD_PARAM, "an attribute is of another descriptor");
  if (rule->second.type != int(type)) return wrong(BAD_PARAM, "an attribute has another type");
  if (count < rule->second.least || count > rule->second.most || !values) return wrong(BAD_PARAM, "an attribute has another number");
  const size_t bytes = bytes_of(int(type)) * size_t(count);
  std::vector<unsigned char> copied(bytes);
  std::memcpy(copied.data(), values, bytes);
  of.values[which] = copied;
  if (type == HANDLE && !live.count(of.one<void*>(which))) return wrong(BAD_PARAM, "a handle is not there");
  if (type == DESCRIPTOR) {
    const void* to = of.one<void*>(which);
    if (!live.count(to)) return wrong(BAD_PARAM, "what is referred to is not there");
    if (!static_cast<const Descriptor*>(to)->is_final) return wrong(NOT_FINALIZED, "what is referred to is not finalized");
  }
  return OK;
}
API int cudnnBackendFinalize(void* handle) {
  ENTER(cudnnBackendFinalize)
  FIND(of, handle)
  if (of.is_final) return wrong(BAD_PARAM, "finalized twice");
  for (const auto& rule : RULES)
    if (rule.second.kind == of.kind && !of.values.count(rule.first)) return wrong(BAD_PARAM, "an attribute is missing");
  switch (of.kind) {
    case TENSOR: {
      const auto sizes = of.all<int64_t>(902), strides = of.all<int64_t>(903);
      const int64_t alignment = of.one<int64_t>(900);
      const int type = of.one<int>(901);
      if (sizes.size() != strides.size()) return wrong(BAD_PARAM, "sizes and strides differ in number");
      if (alignment < (type == F32 ? 4 : 2) || alignment & (alignment - 1)) return wrong(BAD_PARAM, "an alignment is none");
      for (size_t d = 0; d < sizes.size(); d++)
        if (sizes[d] < 1 || strides[d] < 0) return wrong(BAD_PARAM, "a size or a stride is none");
      if (type != F32 && type != F16 && type != BF16) return lacking("a type");
      break;
    }
    case FORWARD: case BACKWARD_DATA: case BACKWARD_FILTER:
      if (const Status status = check(of)) return status;
      break;
    case HEURISTIC: {
      const int mode = of.one<int>(200);
      if (mode != FALLBACK && mode != BEST) return wrong(BAD_PARAM, "a mode of the heuristic is unknown");
      if (lacks("all")) return lacking("an engine");
      break;
    }
    case PLAN: {
      const Descriptor& configuration = of.to(401);
      if (configuration.kind != CONFIGURATION || !configuration.graph) return wrong(BAD_PARAM, "a plan is of no configuration");
      if (configuration.engine == IMPOSSIBLE) return lacking("a plan of this configuration");
      of.graph = configuration.graph;
      of.engine = configuration.engine;
      break;
    }
    case ENGINE: case CONFIGURATION: return wrong(BAD_PARAM, "what the heuristic gives is final");
    default: break;
  }
  of.is_final = true;
  return OK;
}
API int cudnnBackendGetAttribute(void* handle, unsigned which, unsigned type, int64_t wanted, int64_t* count, void* values) {
  ENTER(cudnnBackendGetAttribute)
  FIND(of, handle)
  if (!of.is_final) return wrong(NOT_FINALIZED, "an attribute is asked for before the end");
  if (wanted < 1 || !count || !values) return wrong(BAD_PARAM, "no value is wanted");
  const auto named = [&](int kind, Type own) { return of.kind == kind && type == unsigned(own); };
  if (which == 202 && named(HEURISTIC, DESCRIPTOR)) {
    std::vector<int> engines = {OTHER_BITS, FEWER_DIGITS, OF_LATER, COMPILED, IMPOSSIBLE, HUGE_WORKSPACE};
    if (of.one<int>(200) == FALLBACK) engines.push_back(PLAIN);
    else if (!lacks("best")) engines.insert(engines.end(), {CORES, PLAIN});
    *count = 0;
    for (const int engine : engines) {
      if (*count >= wanted) break;
      void* const to = static_cast<void**>(values)[*count];
      FIND(configuration, to)
      if (configuration.kind != CONFIGURATION) return wrong(BAD_PARAM, "a place for a configuration is none");
      configuration.graph = &of.to(201);
      configuration.engine = engine;
      configuration.is_final = true;
      ++*count;
    }
    return OK;
  }
  if (which == 300 && named(CONFIGURATION, DESCRIPTOR)) {
    void* const to = static_cast<void**>(values)[0];
    FIND(engine, to)
    if (engine.kind != ENGINE) return wrong(BAD_PARAM, "a place for an engine is none");
    engine.graph = of.graph;
    engine.engine = of.engine;
    engine.is_final = true;
    *count = 1;
    return OK;
  }
  if (which == 1303 && named(ENGINE, NOTE)) {
    const auto notes = notes_of(of.engine, work_of(of.graph->to(801)).image[0].type);
    *count = int64_t(notes.size());
    for (int64_t i = 0; i < *count && i < wanted; i++) static_cast<int*>(values)[i] = notes[size_t(i)];
    return OK;
  }
  if (which == 1305 && named(ENGINE, BEHAVIOR)) {
    // Compiled at run time.
    *count = of.engine == COMPILED;
    static_cast<int*>(values)[0] = 0;
    return OK;
  }
  if (which == 402 && named(PLAN, INT64)) {
    *static_cast<int64_t*>(values) = of.engine == HUGE_WORKSPACE ? int64_t(1) << 50 : WORKSPACE;
    *count = 1;
    return OK;
  }
  return wrong(BAD_PARAM, "what is asked for is unknown");
}
API int cudnnBackendExecute(void* handle, void* of_plan, void* of_pack) {
  ENTER(cudnnBackendExecute)
  if (!live.count(handle)) return wrong(BAD_PARAM, "a handle is not there");
  const Handle& own = *static_cast<Handle*>(handle);
  FIND(plan, of_plan)
  FIND(pack, of_pack)
  if (plan.kind != PLAN || pack.kind != PACK || !plan.is_final || !pack.is_final) return wrong(NOT_FINALIZED, "a plan or a pack is none");
  if (plan.one<void*>(400) != handle) return wrong(BAD_PARAM, "the plan is another handle's");
  if (own.device != driver()->device()) return wrong(BAD_PARAM, "another device's context is current");
  auto work = std::make_unique<Work>(work_of(plan.graph->to(801)));
  work->engine = plan.engine;
  const auto names = pack.all<int64_t>(1000);
  const auto pointers = pack.all<uint64_t>(1001);
  for (int i = 0; i < 3; i++) {
    for (size_t at = 0; at < 3; at++)
      if (names[at] == work->image[i].name) work->at[i] = pointers[at];
    if (!work->at[i] || work->at[i] % uint64_t(work->image[i].alignment)) return wrong(BAD_PARAM, "an image is missing or not aligned");
  }
  work->workspace = pack.one<uint64_t>(1003);
  if (!work->workspace || work->workspace % 16) return wrong(BAD_PARAM, "the workspace is missing or not aligned");
  const auto drop = [](void* data) { delete static_cast<Work*>(data); };
  return driver()->give(own.stream, run, work.release(), drop) ? wrong(EXECUTION_FAILED, "the driver refused it") : OK;
}
