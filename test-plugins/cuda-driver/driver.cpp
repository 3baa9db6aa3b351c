// A stand-in for libcuda.so: implements the driver functions that backend-cuda calls, on the CPU.
//
// Kernels are in `libkeyway_cuda_kernels.so` next to this library: the same sources, compiled by a C++ compiler. Of a PTX
// image only the names of the entries and the sizes of their parameters are read, which must match the compiled kernels.
// Work submitted to a stream is executed at the next synchronization, in a random order that the streams and events allow.
//
// Environment variables configure the machine:
//   KEYWAY_STAND_IN_DEVICES  number of devices (2)
//   KEYWAY_STAND_IN_MEMORY   bytes of memory of each (1 GiB)
//   KEYWAY_STAND_IN_VERSION  the driver's version (13000)
//   KEYWAY_STAND_IN_CHIP     the compute capability, ten times (90)
//   KEYWAY_STAND_IN_MAPS     0, virtual memory management is not supported (1)
//   KEYWAY_STAND_IN_SEED     seed of the random order (1)
//   KEYWAY_STAND_IN_FAIL     NAME:N, the N-th call of that function fails with an unknown error; *:N, the N-th of any
//   KEYWAY_STAND_IN_SKIP     NAME, every call of that synchronizing function returns success without any effect
//   KEYWAY_STAND_IN_FAULT    NAME, kernels of that name cannot access the memory passed to them
//   KEYWAY_STAND_IN_ORDER    0 to 3, the order of the threads of every block, as in `Way` of shim.cpp (random for each launch)
//   KEYWAY_STAND_IN_COUNT    a file to which the number of calls of each function is written at exit
//   KEYWAY_STAND_IN_LAUNCHED a file to which the number of launches of each kernel is written at exit
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {
enum Result {
  OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
  INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
  ILLEGAL_ADDRESS = 700, PEER_ALREADY = 704, PEER_NOT = 705, LAUNCH_FAILED = 719, CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901, UNKNOWN = 999,
};
struct ResultName {
  Result code;
  const char* name;
  const char* text;
};
const ResultName NAMES[] = {
    {OK, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {PEER_ALREADY, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {PEER_NOT, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

struct ShimIndex {
  unsigned x, y, z;
};
struct ShimContext {
  ShimIndex thread, block, threads, blocks;
};
struct ShimKernel {
  void (*run)(const void*);
  unsigned long long argument_bytes;
};
using Launch = bool (*)(const ShimKernel*, ShimIndex, ShimIndex, unsigned, const void*, unsigned long long);

struct Event {
  uint64_t recorded = 0, reached = 0;
  std::chrono::steady_clock::time_point at;
};
struct Task {
  std::function<int()> work;
  std::shared_ptr<Event> waits, marks;
  uint64_t ticket = 0;
};
// The work of a captured stream, in order; copied into the launchable graph.
struct Graph {
  int device;
  std::vector<std::function<int()>> work;
};
struct Stream {
  int device;
  std::deque<Task> tasks;
  // The graph that records the stream's work while it is captured, and whether an operation occurred that cannot be
  // captured.
  std::unique_ptr<Graph> captured = nullptr;
  bool invalid = false;
};
struct Executable {
  Graph graph;
  // The event at the end of the previous launch: launches of one graph are executed sequentially.
  std::shared_ptr<Event> last;
};
struct Device {
  Stream none;
  std::vector<std::unique_ptr<Stream>> streams;
  uint64_t used = 0;
  int lost = OK;
  std::set<int> peers;
};
constexpr size_t PAGE = 4096;
struct Block {
  int device;
  char* pages;
  size_t mapped, bytes, padded;
};
struct Module {
  std::map<std::string, size_t> entries;
};
struct Function {
  const ShimKernel* kernel;
  std::string name;
  // The maximum size of dynamic shared memory that a launch may request.
  unsigned shared;
};

std::recursive_mutex lock;
bool initialised;
std::vector<Device> devices;
std::map<uintptr_t, Block> blocks;
std::map<uintptr_t, size_t> pinned;
std::map<Event*, std::shared_ptr<Event>> events;
std::set<Module*> modules;
std::set<Graph*> graphs;
std::set<Executable*> executables;
std::map<std::pair<Module*, std::string>, std::unique_ptr<Function>> functions;
std::map<std::string, uint64_t> calls, launched;
uint64_t all_calls;
std::mt19937_64 random_numbers;
void* kernels;
Launch launch;
thread_local int current = -1;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}
uint64_t memory() { return setting("KEYWAY_STAND_IN_MEMORY", 1ull << 30); }
uint64_t chip() { return setting("KEYWAY_STAND_IN_CHIP", 90); }
// The shared memory of a block without opting in, and the maximum: for chips that are not listed the smallest maximum.
constexpr unsigned FREE_SHARED = 48 * 1024;
unsigned most_shared() { return chip() == 90 ? 227 * 1024 : 64 * 1024; }

// Whether this call is configured to fail.
bool fails(const char* name) {
  const uint64_t own = ++calls[name];
  all_calls++;
  const char* wanted = std::getenv("KEYWAY_STAND_IN_FAIL");
  const char* colon = wanted ? std::strrchr(wanted, ':') : nullptr;
  if (!colon) return false;
  const uint64_t number = std::strtoull(colon + 1, nullptr, 10);
  const std::string which(wanted, colon - wanted);
  return which == "*" ? all_calls == number : which == name && own == number;
}

#define ENTER(name)                                     \
  std::lock_guard<std::recursive_mutex> guard(lock);    \
  if (fails(#name)) return UNKNOWN;
#define ENTER_CONTEXT(name)                             \
  ENTER(name)                                           \
  if (!initialised) return NOT_INITIALIZED;             \
  if (current < 0) return INVALID_CONTEXT;              \
  if (devices[current].lost) return devices[current].lost;
// For functions that order or allow work: skipping one is a fault that tests must detect.
#define ENTER_ORDERING(name)                                             \
  ENTER_CONTEXT(name)                                                    \
  static const char* const skipped = std::getenv("KEYWAY_STAND_IN_SKIP"); \
  if (skipped && std::strcmp(skipped, #name) == 0) return OK;
#define API extern "C" __attribute__((visibility("default")))

bool ready(const Stream& stream) {
  if (stream.tasks.empty()) return false;
  const Task& first = stream.tasks.front();
  return !first.waits || first.waits->reached >= first.ticket;
}

// Executes the next task of a random stream that is not blocked. Returns whether there was one.
bool step() {
  std::vector<Stream*> can;
  for (Device& device : devices) {
    if (ready(device.none)) can.push_back(&device.none);
    for (auto& stream : device.streams)
      if (stream && ready(*stream)) can.push_back(stream.get());
  }
  if (can.empty()) return false;
  Stream* stream = can[random_numbers() % can.size()];
  Task task = std::move(stream->tasks.front());
  stream->tasks.pop_front();
  Device& device = devices[stream->device];
  if (task.work && !device.lost) {
    const int result = task.work();
    if (result != OK) device.lost = result;
  }
  if (task.marks) {
    task.marks->reached = std::max(task.marks->reached, task.ticket);
    task.marks->at = std::chrono::steady_clock::now();
  }
  return true;
}

int wait_until(const std::function<bool()>& done) {
  while (!done())
    if (!step()) return UNKNOWN;
  return OK;
}

// Invalidates the stream's capture after an operation that cannot be captured.
int spoil(Stream* stream) {
  stream->invalid = true;
  return CAPTURE_UNSUPPORTED;
}

int give(Stream* stream, Task task) {
  if (stream->captured) {
    if (task.waits || task.marks) return spoil(stream);
    stream->captured->work.push_back(std::move(task.work));
    return OK;
  }
  stream->tasks.push_back(std::move(task));
  // Sometimes work is executed immediately.
  while (random_numbers() % 4 == 0 && step()) {
  }
  return OK;
}

Stream* stream_of(void* handle) {
  if (!handle) return &devices[current].none;
  for (auto& stream : devices[current].streams)
    if (stream.get() == handle) return stream.get();
  return nullptr;
}

int wait_for(Stream* stream) {
  if (stream->captured) return spoil(stream);
  const int result = wait_until([&] { return stream->tasks.empty(); });
  return devices[stream->device].lost ? devices[stream->device].lost : result;
}
int wait_for_all(int device) {
  for (auto& stream : devices[device].streams)
    if (stream && stream->captured) return spoil(stream.get());
  const int result = wait_until([&] {
    bool empty = devices[device].none.tasks.empty();
    for (auto& stream : devices[device].streams) empty = empty && (!stream || stream->tasks.empty());
    return empty;
  });
  return devices[device].lost ? devices[device].lost : result;
}

// Pages of freed allocations, by their number of bytes. They are inaccessible; mapping new pages and zero-filling them
// would take longer than the tests' computations.
std::map<size_t, std::vector<char*>> freed;
size_t freed_bytes = 0;
constexpr size_t MOST_FREED = 32 << 20;

char* unused_pages(size_t mapped) {
  auto& same = freed[mapped];
  if (!same.empty()) {
    char* pages = same.back();
    same.pop_back();
    freed_bytes -= mapped;
    return pages;
  }
  void* pages = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<char*>(pages);
}

void give_pages(char* pages, size_t mapped) {
  if (freed_bytes + mapped > MOST_FREED || mprotect(pages, mapped, PROT_NONE) != 0) {
    munmap(pages, mapped);
    return;
  }
  freed[mapped].push_back(pages);
  freed_bytes += mapped;
}

// Each allocation ends at an inaccessible guard page, except for padding to a multiple of 64 bytes, which holds a pattern
// that is checked on free. The memory is filled, so that nothing is 0 by chance.
int allocate(int index, size_t bytes, uintptr_t* out) {
  Device& device = devices[index];
  if (bytes == 0) return INVALID_VALUE;
  if (device.used + bytes > memory()) return OUT_OF_MEMORY;
  const size_t padded = (bytes + 63) / 64 * 64;
  const size_t inside = (padded + PAGE - 1) / PAGE * PAGE, mapped = inside + 2 * PAGE;
  char* pages = unused_pages(mapped);
  if (!pages) return OUT_OF_MEMORY;
  mprotect(pages + PAGE, inside, PROT_READ | PROT_WRITE);
  char* start = pages + PAGE + inside - padded;
  if (padded <= 1 << 20) std::memset(start, 0xcd, padded);
  else std::memset(start + bytes, 0xcd, padded - bytes);
  device.used += bytes;
  blocks[uintptr_t(start)] = Block{index, pages, mapped, bytes, padded};
  *out = uintptr_t(start);
  return OK;
}

int release(uintptr_t at) {
  const auto found = blocks.find(at);
  if (found == blocks.end()) return INVALID_VALUE;
  const Block block = found->second;
  for (size_t i = block.bytes; i < block.padded; i++) {
    if (reinterpret_cast<unsigned char*>(at)[i] != 0xcd) {
      std::fprintf(stderr, "stand-in driver: byte %zu past the end of an allocation of %zu bytes was written\n",
                   i - block.bytes, block.bytes);
      return ILLEGAL_ADDRESS;
    }
  }
  devices[block.device].used -= block.bytes;
  give_pages(block.pages, block.mapped);
  blocks.erase(found);
  return OK;
}

// Reserved addresses, and memory that is mapped to them: unmapped addresses are inaccessible.
constexpr size_t GRAIN = 2 << 20;
struct Memory {
  int device;
  size_t bytes;
  // Whether the handle was released, so that only its mappings retain the memory, and the number of mappings.
  bool released = false;
  int mappings = 0;
};
struct Mapping {
  size_t bytes;
  uint64_t memory;
  bool open = false;
};
std::map<uintptr_t, size_t> reserved;
std::map<uint64_t, Memory> memories;
std::map<uintptr_t, Mapping> mappings;
uint64_t last_memory;

void drop_memory(uint64_t handle) {
  const Memory& memory = memories[handle];
  if (!memory.released || memory.mappings) return;
  devices[memory.device].used -= memory.bytes;
  memories.erase(handle);
}
bool is_reserved(uintptr_t at, size_t bytes) {
  auto next = reserved.upper_bound(at);
  if (next == reserved.begin()) return false;
  const auto& range = *--next;
  return at + bytes <= range.first + range.second;
}
bool is_mapped_among(uintptr_t at, size_t bytes) {
  auto next = mappings.lower_bound(at + bytes);
  return next != mappings.begin() && (--next)->first + next->second.bytes > at;
}
// Whether the complete range is mapped and accessible, by adjacent mappings together.
bool is_mapped(uintptr_t at, size_t bytes) {
  const uintptr_t end = at + bytes;
  auto next = mappings.upper_bound(at);
  if (next == mappings.begin()) return false;
  for (--next; next != mappings.end() && next->first <= at && next->second.open; ++next) {
    at = std::max<uintptr_t>(at, next->first + next->second.bytes);
    if (at >= end) return true;
  }
  return false;
}

// Whether the range is device memory.
bool holds(uintptr_t at, size_t bytes) {
  if (is_mapped(at, bytes)) return true;
  auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return false;
  const auto& block = *--next;
  return at + bytes <= block.first + block.second.bytes;
}
bool is_pinned(uintptr_t at, size_t bytes) {
  auto next = pinned.upper_bound(at);
  if (next == pinned.begin()) return false;
  const auto& range = *--next;
  return at + bytes <= range.first + range.second;
}

int copy(uintptr_t to, uintptr_t from, size_t bytes, bool to_device, bool from_device) {
  if ((to_device && !holds(to, bytes)) || (from_device && !holds(from, bytes))) {
    std::fprintf(stderr, "stand-in driver: a copy of %zu bytes touches what is no device memory\n", bytes);
    return ILLEGAL_ADDRESS;
  }
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return OK;
}

struct sigaction before;
const char* kernel_now;
void on_fault(int signal, siginfo_t* info, void* context) {
  if (kernel_now) {
    auto where = reinterpret_cast<const ShimContext* (*)()>(dlsym(kernels, "shim_where"))();
    std::fprintf(stderr, "stand-in driver: %s, block (%u, %u, %u), thread %u: an access to %p\n", kernel_now,
                 where->block.x, where->block.y, where->block.z, where->thread.x, info->si_addr);
    reinterpret_cast<void (*)()>(dlsym(kernels, "shim_abandon"))();
  }
  sigaction(signal, &before, nullptr);
  (void)context;
}

// Makes all memory of the devices inaccessible, or accessible again.
void protect(int access) {
  for (const auto& block : blocks) mprotect(block.second.pages + PAGE, block.second.mapped - 2 * PAGE, access);
  for (const auto& mapping : mappings)
    if (mapping.second.open) mprotect(reinterpret_cast<void*>(mapping.first), mapping.second.bytes, access);
}

int run(const Function* function, ShimIndex grid, ShimIndex block, unsigned shared, const std::vector<char>& arguments) {
  static thread_local char stack[65536];
  stack_t alternate{}, old{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, &old);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  launched[function->name]++;
  kernel_now = function->name.c_str();
  const char* wanted = std::getenv("KEYWAY_STAND_IN_FAULT");
  const bool is_faulty = wanted && function->name == wanted;
  if (is_faulty) protect(PROT_NONE);
  const bool ended = launch(function->kernel, grid, block, shared, arguments.data(), random_numbers());
  if (is_faulty) protect(PROT_READ | PROT_WRITE);
  kernel_now = nullptr;
  sigaction(SIGSEGV, &before, nullptr);
  sigaltstack(&old, nullptr);
  return ended ? OK : ILLEGAL_ADDRESS;
}

bool open_kernels() {
  if (kernels) return true;
  Dl_info own;
  if (!dladdr(reinterpret_cast<void*>(&open_kernels), &own)) return false;
  std::string path(own.dli_fname);
  path = path.substr(0, path.rfind('/') + 1) + "libkeyway_cuda_kernels.so";
  kernels = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!kernels) {
    std::fprintf(stderr, "stand-in driver: %s\n", dlerror());
    return false;
  }
  launch = reinterpret_cast<Launch>(dlsym(kernels, "shim_launch"));
  return launch != nullptr;
}

// Reads the entries of a PTX image, with the size in bytes of their one parameter.
bool read_entries(const std::string& text, std::map<std::string, size_t>& entries) {
  if (text.find(".version") == std::string::npos || text.find(".target") == std::string::npos) return false;
  for (size_t at = text.find(".entry "); at != std::string::npos; at = text.find(".entry ", at)) {
    at += 7;
    const size_t open = text.find('(', at);
    if (open == std::string::npos) return false;
    std::string name = text.substr(at, open - at);
    while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
    const size_t close = text.find(')', open), bracket = text.find('[', open);
    if (close == std::string::npos) return false;
    entries[name] = bracket < close ? std::strtoull(text.c_str() + bracket + 1, nullptr, 10) : 0;
  }
  return true;
}

// Whether an image's target is this chip or a lower one; a target that ends with `a` is only for that chip.
bool serves_chip(const char* image) {
  const char* named = std::strstr(image, ".target sm_");
  if (!named) return false;
  char* end;
  const uint64_t target = std::strtoull(named + 11, &end, 10);
  return *end == 'a' ? target == chip() : target <= chip();
}

void write_map(const char* variable, const std::map<std::string, uint64_t>& counts) {
  const char* path = std::getenv(variable);
  FILE* file = path ? std::fopen(path, "w") : nullptr;
  if (!file) return;
  for (const auto& call : counts) std::fprintf(file, "%s %llu\n", call.first.c_str(), (unsigned long long)call.second);
  std::fclose(file);
}
void write_counts() {
  write_map("KEYWAY_STAND_IN_COUNT", calls);
  write_map("KEYWAY_STAND_IN_LAUNCHED", launched);
}
}  // namespace

API int cuInit(unsigned) {
  ENTER(cuInit)
  if (initialised) return OK;
  size_t count = setting("KEYWAY_STAND_IN_DEVICES", 2);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    size_t listed = 0;
    for (const char* at = visible; *at; at = *at == ',' ? at + 1 : at) {
      char* end;
      const long index = std::strtol(at, &end, 10);
      if (end == at || index < 0 || size_t(index) >= count) break;
      listed++;
      at = end;
      if (*at != ',') break;
    }
    count = listed;
  }
  if (count == 0) return NO_DEVICE;
  random_numbers.seed(setting("KEYWAY_STAND_IN_SEED", 1));
  devices = std::vector<Device>(count);
  for (size_t i = 0; i < count; i++) devices[i].none.device = int(i);
  std::atexit(write_counts);
  initialised = true;
  return OK;
}
API int cuDriverGetVersion(int* version) {
  ENTER(cuDriverGetVersion)
  *version = int(setting("KEYWAY_STAND_IN_VERSION", 13000));
  return OK;
}
API int cuGetErrorName(int code, const char** name) {
  for (const ResultName& known : NAMES)
    if (known.code == code) return *name = known.name, OK;
  return INVALID_VALUE;
}
API int cuGetErrorString(int code, const char** text) {
  for (const ResultName& known : NAMES)
    if (known.code == code) return *text = known.text, OK;
  return INVALID_VALUE;
}
API int cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount)
  if (!initialised) return NOT_INITIALIZED;
  *count = int(devices.size());
  return OK;
}
API int cuDeviceGet(int* device, int index) {
  ENTER(cuDeviceGet)
  if (!initialised) return NOT_INITIALIZED;
  if (index < 0 || size_t(index) >= devices.size()) return INVALID_DEVICE;
  *device = index;
  return OK;
}
API int cuDeviceGetName(char* name, int length, int device) {
  ENTER(cuDeviceGetName)
  std::snprintf(name, size_t(length), "stand-in for a GPU, number %d", device);
  return OK;
}
API int cuDeviceTotalMem_v2(size_t* bytes, int) {
  ENTER(cuDeviceTotalMem_v2)
  *bytes = memory();
  return OK;
}
API int cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER(cuDeviceGetAttribute)
  switch (attribute) {
    case 16: *value = 4; return OK;   // multiprocessors
    case 75: *value = int(chip() / 10); return OK;   // compute capability, major
    case 76: *value = int(chip() % 10); return OK;   // and minor
    case 102: *value = setting("KEYWAY_STAND_IN_MAPS", 1) != 0; return OK;  // memory at reserved addresses
    case 115: *value = 1; return OK;  // memory pools
    default: return INVALID_VALUE;
  }
}
API int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER(cuDevicePrimaryCtxRetain)
  if (!initialised) return NOT_INITIALIZED;
  if (device < 0 || size_t(device) >= devices.size()) return INVALID_DEVICE;
  *context = &devices[device];
  return OK;
}
API int cuCtxSetCurrent(void* context) {
  ENTER(cuCtxSetCurrent)
  for (size_t i = 0; i < devices.size(); i++)
    if (&devices[i] == context) return current = int(i), OK;
  return INVALID_CONTEXT;
}
API int cuCtxSynchronize() {
  ENTER_ORDERING(cuCtxSynchronize)
  return wait_for_all(current);
}
API int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  ENTER(cuDeviceCanAccessPeer)
  *can = device != peer;
  return OK;
}
API int cuCtxEnablePeerAccess(void* peer, unsigned) {
  ENTER_CONTEXT(cuCtxEnablePeerAccess)
  const int index = int(static_cast<Device*>(peer) - devices.data());
  return devices[current].peers.insert(index).second ? OK : PEER_ALREADY;
}
API int cuCtxDisablePeerAccess(void* peer) {
  ENTER_CONTEXT(cuCtxDisablePeerAccess)
  const int index = int(static_cast<Device*>(peer) - devices.data());
  return devices[current].peers.erase(index) ? OK : PEER_NOT;
}
API int cuMemGetInfo_v2(size_t* left, size_t* total) {
  ENTER_CONTEXT(cuMemGetInfo_v2)
  *total = memory();
  *left = memory() - devices[current].used;
  return OK;
}
API int cuMemAlloc_v2(uintptr_t* out, size_t bytes) {
  ENTER_CONTEXT(cuMemAlloc_v2)
  return allocate(current, bytes, out);
}
API int cuMemFree_v2(uintptr_t at) {
  ENTER_CONTEXT(cuMemFree_v2)
  const int result = wait_for_all(current);
  return result ? result : release(at);
}
API int cuMemAllocAsync(uintptr_t* out, size_t bytes, void* handle) {
  ENTER_CONTEXT(cuMemAllocAsync)
  Stream* stream = stream_of(handle);
  if (!stream) return INVALID_HANDLE;
  // Memory nodes of graphs are not supported by the stand-in.
  if (stream->captured) return spoil(stream);
  int result = allocate(current, bytes, out);
  if (result == OUT_OF_MEMORY) {
    // Enqueued work may still free memory.
    if (const int failed = wait_for_all(current)) return failed;
    result = allocate(current, bytes, out);
  }
  return result;
}
API int cuMemFreeAsync(uintptr_t at, void* handle) {
  ENTER_CONTEXT(cuMemFreeAsync)
  Stream* stream = stream_of(handle);
  if (!stream) return INVALID_HANDLE;
  return give(stream, {[at] { return release(at); }, nullptr, nullptr, 0});
}
// Checks the fields of the driver's structures for the requested memory: the location type (device) and the device's number
// at these offsets.
static bool is_own_memory(const int* of) { return of[0] == 1 && of[1] == 0 && of[2] == 1 && of[3] == current; }
API int cuMemGetAllocationGranularity(size_t* bytes, const int* of, unsigned) {
  ENTER_CONTEXT(cuMemGetAllocationGranularity)
  if (!is_own_memory(of)) return INVALID_VALUE;
  *bytes = GRAIN;
  return OK;
}
API int cuMemAddressReserve(uintptr_t* at, size_t bytes, size_t, uintptr_t, unsigned long long) {
  ENTER_CONTEXT(cuMemAddressReserve)
  if (!bytes || bytes % GRAIN) return INVALID_VALUE;
  // A gap after each range, and addresses that are multiples of the granularity.
  void* pages = mmap(nullptr, bytes + 2 * GRAIN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return OUT_OF_MEMORY;
  const uintptr_t begin = uintptr_t(pages), own = (begin + GRAIN - 1) / GRAIN * GRAIN;
  if (own > begin) munmap(pages, own - begin);
  munmap(reinterpret_cast<void*>(own + bytes + PAGE), begin + bytes + 2 * GRAIN - (own + bytes + PAGE));
  reserved[own] = bytes;
  *at = own;
  return OK;
}
API int cuMemAddressFree(uintptr_t at, size_t bytes) {
  ENTER_CONTEXT(cuMemAddressFree)
  const auto found = reserved.find(at);
  if (found == reserved.end() || found->second != bytes || is_mapped_among(at, bytes)) return INVALID_VALUE;
  munmap(reinterpret_cast<void*>(at), bytes + PAGE);
  reserved.erase(found);
  return OK;
}
API int cuMemCreate(uint64_t* handle, size_t bytes, const int* of, unsigned long long) {
  ENTER_CONTEXT(cuMemCreate)
  if (!is_own_memory(of) || !bytes || bytes % GRAIN) return INVALID_VALUE;
  if (devices[current].used + bytes > memory()) return OUT_OF_MEMORY;
  devices[current].used += bytes;
  memories[*handle = ++last_memory] = Memory{current, bytes};
  return OK;
}
API int cuMemRelease(uint64_t handle) {
  ENTER_CONTEXT(cuMemRelease)
  const auto found = memories.find(handle);
  if (found == memories.end() || found->second.released) return INVALID_VALUE;
  found->second.released = true;
  drop_memory(handle);
  return OK;
}
API int cuMemMap(uintptr_t at, size_t bytes, size_t offset, uint64_t handle, unsigned long long) {
  ENTER_CONTEXT(cuMemMap)
  const auto found = memories.find(handle);
  if (found == memories.end() || found->second.released || offset || found->second.bytes != bytes || at % GRAIN)
    return INVALID_VALUE;
  if (!is_reserved(at, bytes) || is_mapped_among(at, bytes)) return INVALID_VALUE;
  found->second.mappings++;
  mappings[at] = Mapping{bytes, handle};
  return OK;
}
API int cuMemSetAccess(uintptr_t at, size_t bytes, const int* access, size_t count) {
  ENTER_CONTEXT(cuMemSetAccess)
  const auto found = mappings.find(at);
  if (found == mappings.end() || found->second.bytes != bytes) return INVALID_VALUE;
  if (count != 1 || access[0] != 1 || access[1] != current || access[2] != 3) return INVALID_VALUE;
  mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE);
  std::memset(reinterpret_cast<void*>(at), 0xcd, std::min<size_t>(bytes, 1 << 20));
  found->second.open = true;
  return OK;
}
// Unlike for freed memory, the driver does not synchronize: running work would access unmapped memory.
API int cuMemUnmap(uintptr_t at, size_t bytes) {
  ENTER_CONTEXT(cuMemUnmap)
  const auto found = mappings.find(at);
  if (found == mappings.end() || found->second.bytes != bytes) return INVALID_VALUE;
  const uint64_t handle = found->second.memory;
  // The content of the pages is lost.
  mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mappings.erase(found);
  memories[handle].mappings--;
  drop_memory(handle);
  return OK;
}
API int cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  ENTER_CONTEXT(cuMemHostAlloc)
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*out) return OUT_OF_MEMORY;
  pinned[uintptr_t(*out)] = bytes;
  return OK;
}
API int cuMemFreeHost(void* at) {
  ENTER_CONTEXT(cuMemFreeHost)
  if (!pinned.erase(uintptr_t(at))) return INVALID_VALUE;
  std::free(at);
  return OK;
}
API int cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, void* handle) {
  ENTER_CONTEXT(cuMemcpyHtoDAsync_v2)
  Stream* stream = stream_of(handle);
  if (!stream) return INVALID_HANDLE;
  const uintptr_t source = uintptr_t(from);
  if (is_pinned(source, bytes))
    return give(stream, {[=] { return copy(to, source, bytes, true, false); }, nullptr, nullptr, 0});
  // If captured, a replay would read this memory when it may belong to another owner.
  if (stream->captured) return spoil(stream);
  auto staged = std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  return give(stream, {[=] { return copy(to, uintptr_t(staged->data()), bytes, true, false); }, nullptr, nullptr, 0});
}
API int cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, void* handle) {
  ENTER_CONTEXT(cuMemcpyDtoHAsync_v2)
  Stream* stream = stream_of(handle);
  if (!stream) return INVALID_HANDLE;
  const uintptr_t target = uintptr_t(to);
  if (stream->captured && !is_pinned(target, bytes)) return spoil(stream);
  give(stream, {[=] { return copy(target, from, bytes, false, true); }, nullptr, nullptr, 0});
  return is_pinned(target, bytes) ? OK : wait_for(stream);
}
API int cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, void* handle) {
  ENTER_CONTEXT(cuMemcpyDtoDAsync_v2)
  Stream* stream = stream_of(handle);
  if (!stream) return INVALID_HANDLE;
  return give(stream, {[=] { return copy(to, from, bytes, true, true); }, nullptr, nullptr, 0});
}
API int cuMemcpyPeerAsync(uintptr_t to, void*, uintptr_t from, void*, size_t bytes, void* handle) {
  ENTER_CONTEXT(cuMemcpyPeerAsync)
  Stream* stream = stream_of(handle);
  if (!stream) return INVALID_HANDLE;
  return give(stream, {[=] { return copy(to, from, bytes, true, true); }, nullptr, nullptr, 0});
}
API int cuStreamCreate(void** out, unsigned flags) {
  ENTER_CONTEXT(cuStreamCreate)
  // A stream that the default stream synchronizes with would hide a missing order.
  if (flags != 1) return INVALID_VALUE;
  devices[current].streams.push_back(std::make_unique<Stream>());
  devices[current].streams.back()->device = current;
  *out = devices[current].streams.back().get();
  return OK;
}
API int cuStreamDestroy_v2(void* handle) {
  ENTER_CONTEXT(cuStreamDestroy_v2)
  for (auto& stream : devices[current].streams) {
    if (stream.get() != handle || !handle) continue;
    wait_for(stream.get());
    stream.reset();
    return OK;
  }
  return INVALID_HANDLE;
}
API int cuStreamSynchronize(void* handle) {
  ENTER_ORDERING(cuStreamSynchronize)
  Stream* stream = stream_of(handle);
  return stream ? wait_for(stream) : INVALID_HANDLE;
}
API int cuStreamBeginCapture_v2(void* handle, unsigned mode) {
  ENTER_CONTEXT(cuStreamBeginCapture_v2)
  Stream* stream = stream_of(handle);
  if (!stream) return INVALID_HANDLE;
  // The default stream cannot be captured; capture modes that check other calls of the thread are not supported.
  if (!handle || stream->captured) return CAPTURE_UNSUPPORTED;
  if (mode != 2) return INVALID_VALUE;
  stream->captured = std::make_unique<Graph>(Graph{current, {}});
  stream->invalid = false;
  return OK;
}
API int cuStreamEndCapture(void* handle, void** out) {
  *out = nullptr;
  Stream* stream = nullptr;
  std::unique_ptr<Graph> graph;
  {
    // The capture ends even if ending it fails.
    std::lock_guard<std::recursive_mutex> guard(lock);
    stream = current < 0 ? nullptr : stream_of(handle);
    if (stream) graph = std::move(stream->captured);
  }
  ENTER_CONTEXT(cuStreamEndCapture)
  if (!stream) return INVALID_HANDLE;
  if (!graph) return INVALID_VALUE;
  if (stream->invalid) return CAPTURE_INVALIDATED;
  graphs.insert(graph.get());
  *out = graph.release();
  return OK;
}
API int cuGraphInstantiateWithFlags(void** out, void* handle, unsigned long long) {
  ENTER_CONTEXT(cuGraphInstantiateWithFlags)
  Graph* graph = static_cast<Graph*>(handle);
  if (!graphs.count(graph)) return INVALID_HANDLE;
  auto executable = std::make_unique<Executable>(Executable{*graph, nullptr});
  executables.insert(executable.get());
  *out = executable.release();
  return OK;
}
API int cuGraphDestroy(void* handle) {
  ENTER_CONTEXT(cuGraphDestroy)
  Graph* graph = static_cast<Graph*>(handle);
  if (!graphs.erase(graph)) return INVALID_HANDLE;
  delete graph;
  return OK;
}
API int cuGraphLaunch(void* handle, void* to) {
  ENTER_CONTEXT(cuGraphLaunch)
  Executable* executable = static_cast<Executable*>(handle);
  Stream* stream = stream_of(to);
  if (!executables.count(executable) || !stream) return INVALID_HANDLE;
  if (executable->graph.device != current) return INVALID_CONTEXT;
  if (stream->captured) return spoil(stream);
  if (executable->last) give(stream, {nullptr, executable->last, nullptr, executable->last->recorded});
  for (const auto& work : executable->graph.work) give(stream, {work, nullptr, nullptr, 0});
  executable->last = std::make_shared<Event>();
  return give(stream, {nullptr, nullptr, executable->last, ++executable->last->recorded});
}
API int cuGraphExecDestroy(void* handle) {
  ENTER_CONTEXT(cuGraphExecDestroy)
  Executable* executable = static_cast<Executable*>(handle);
  if (!executables.erase(executable)) return INVALID_HANDLE;
  delete executable;
  return OK;
}
API int cuEventCreate(void** out, unsigned) {
  ENTER_CONTEXT(cuEventCreate)
  auto event = std::make_shared<Event>();
  *out = event.get();
  events[event.get()] = event;
  return OK;
}
API int cuEventDestroy_v2(void* event) {
  ENTER_CONTEXT(cuEventDestroy_v2)
  return events.erase(static_cast<Event*>(event)) ? OK : INVALID_HANDLE;
}
API int cuEventRecord(void* handle, void* to) {
  ENTER_ORDERING(cuEventRecord)
  const auto found = events.find(static_cast<Event*>(handle));
  Stream* stream = stream_of(to);
  if (found == events.end() || !stream) return INVALID_HANDLE;
  return give(stream, {nullptr, nullptr, found->second, ++found->second->recorded});
}
API int cuStreamWaitEvent(void* to, void* handle, unsigned) {
  ENTER_ORDERING(cuStreamWaitEvent)
  const auto found = events.find(static_cast<Event*>(handle));
  Stream* stream = stream_of(to);
  if (found == events.end() || !stream) return INVALID_HANDLE;
  return give(stream, {nullptr, found->second, nullptr, found->second->recorded});
}
API int cuEventQuery(void* handle) {
  ENTER_CONTEXT(cuEventQuery)
  const auto found = events.find(static_cast<Event*>(handle));
  if (found == events.end()) return INVALID_HANDLE;
  step();
  return found->second->reached >= found->second->recorded ? OK : NOT_READY;
}
API int cuEventSynchronize(void* handle) {
  ENTER_ORDERING(cuEventSynchronize)
  const auto found = events.find(static_cast<Event*>(handle));
  if (found == events.end()) return INVALID_HANDLE;
  const auto event = found->second;
  const int result = wait_until([&] { return event->reached >= event->recorded; });
  return devices[current].lost ? devices[current].lost : result;
}
API int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  ENTER_CONTEXT(cuEventElapsedTime)
  const auto first = events.find(static_cast<Event*>(from)), last = events.find(static_cast<Event*>(to));
  if (first == events.end() || last == events.end()) return INVALID_HANDLE;
  for (const auto& event : {first->second, last->second}) {
    if (event->recorded == 0) return INVALID_HANDLE;
    if (event->reached < event->recorded) return NOT_READY;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(last->second->at - first->second->at).count();
  return OK;
}
API int cuModuleLoadDataEx(void** out, const void* image, unsigned, int*, void**) {
  ENTER_CONTEXT(cuModuleLoadDataEx)
  auto module = std::make_unique<Module>();
  if (!read_entries(static_cast<const char*>(image), module->entries)) return INVALID_IMAGE;
  if (!serves_chip(static_cast<const char*>(image))) return INVALID_PTX;
  *out = module.get();
  modules.insert(module.release());
  return OK;
}
API int cuModuleUnload(void* handle) {
  ENTER_CONTEXT(cuModuleUnload)
  Module* module = static_cast<Module*>(handle);
  if (!modules.erase(module)) return INVALID_HANDLE;
  delete module;
  return OK;
}
API int cuModuleGetFunction(void** out, void* handle, const char* name) {
  ENTER_CONTEXT(cuModuleGetFunction)
  Module* module = static_cast<Module*>(handle);
  if (!modules.count(module)) return INVALID_HANDLE;
  const auto entry = module->entries.find(name);
  if (entry == module->entries.end()) return NOT_FOUND;
  if (!open_kernels()) return NOT_FOUND;
  auto kernel = static_cast<const ShimKernel*>(dlsym(kernels, (std::string(name) + "_shim").c_str()));
  if (!kernel || kernel->argument_bytes != entry->second) {
    std::fprintf(stderr, "stand-in driver: %s takes %zu bytes in the image and %llu as compiled; build both anew\n", name,
                 entry->second, kernel ? kernel->argument_bytes : 0ull);
    return INVALID_IMAGE;
  }
  auto& function = functions[{module, name}];
  if (!function) function = std::make_unique<Function>(Function{kernel, name, FREE_SHARED});
  *out = function.get();
  return OK;
}
API int cuFuncSetAttribute(void* handle, int attribute, int value) {
  ENTER_ORDERING(cuFuncSetAttribute)
  Function* function = static_cast<Function*>(handle);
  constexpr int MOST_DYNAMIC_SHARED = 8;
  if (!function || attribute != MOST_DYNAMIC_SHARED) return INVALID_HANDLE;
  if (value < 0 || unsigned(value) > most_shared()) return INVALID_VALUE;
  function->shared = value;
  return OK;
}
API int cuLaunchKernel(void* handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void* to, void** parameters, void**) {
  ENTER_CONTEXT(cuLaunchKernel)
  Stream* stream = stream_of(to);
  const Function* function = static_cast<const Function*>(handle);
  if (!stream || !function) return INVALID_HANDLE;
  if (!gx || !gy || !gz || gy > 65535 || gz > 65535 || uint64_t(bx) * by * bz - 1 >= 1024) return INVALID_VALUE;
  if (shared > function->shared) return INVALID_VALUE;
  const char* from = static_cast<const char*>(parameters[0]);
  std::vector<char> arguments(from, from + function->kernel->argument_bytes);
  const ShimIndex grid{gx, gy, gz}, block{bx, by, bz};
  return give(stream, {[=] { return run(function, grid, block, shared, arguments); }, nullptr, nullptr, 0});
}

// The interface to the stand-in for cuBLASLt, which is next to this library.
API bool stand_in_fails(const char* name) {
  std::lock_guard<std::recursive_mutex> guard(lock);
  return fails(name);
}
// The device whose context is current; negative if there is none.
API int stand_in_device() { return initialised ? current : -1; }
// Enqueues work on a stream of that device. A return value other than 0 loses the device. Takes ownership of the work's
// data: the work of a captured stream runs with each launch of the graph.
API int stand_in_give(void* handle, int (*work)(void*), void* data, void (*drop)(void*)) {
  const std::shared_ptr<void> kept(data, drop);
  std::lock_guard<std::recursive_mutex> guard(lock);
  if (current < 0) return INVALID_CONTEXT;
  if (devices[current].lost) return devices[current].lost;
  Stream* stream = stream_of(handle);
  if (!stream) return INVALID_HANDLE;
  return give(stream, {[=] { return work(kept.get()); }, nullptr, nullptr, 0});
}
API bool stand_in_holds(uintptr_t at, size_t bytes) {
  std::lock_guard<std::recursive_mutex> guard(lock);
  return holds(at, bytes);
}
