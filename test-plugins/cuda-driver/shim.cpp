// Runs a kernel that was compiled for the CPU, sequentially by blocks and threads.
//
// Each thread of the kernel runs on a fibre. A fibre is reused by the next thread when its thread ends; only a thread that
// waits at a barrier occupies it. So a kernel without barriers needs one fibre, and a switch costs a few nanoseconds.
#include "shim.h"
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <ucontext.h>

ShimContext shim_context;
namespace {
// Not a power of two: stacks at distances of a power of two would map to the same cache sets.
constexpr size_t STACK = 37184 + 32768;

// The kinds of barriers that a thread waits for.
enum Wait { ENDED, BLOCK, WARP };

// An issued asynchronous copy of 16 bytes, of which `bytes` bytes are read, its group, and whether it is for warpgroup
// products.
struct Copy {
  void* to;
  const void* from;
  unsigned bytes, group;
  bool for_products;
};

// An issued warpgroup product, the expected values of its sums, and whether it was committed.
struct Product {
  ShimGroupProduct what;
  std::vector<float> before;
  bool begun;
};

struct Fibre {
  void* stack = nullptr;
#if defined(__x86_64__)
  void* saved = nullptr;
#else
  ucontext_t context;
#endif
  ShimIndex thread{};
  Wait wait = ENDED;
  // The number of values that the thread has exchanged.
  unsigned exchanged = 0;
  // Copies that its thread waits for, and the group of the next.
  std::vector<Copy> copies;
  unsigned group = 0;
  // Copies that have arrived, but are not yet visible to products; pending products, and whether further ones may be
  // issued.
  std::vector<Copy> arrived;
  std::vector<Product> products;
  bool may_begin = false;
};

std::vector<Fibre*> fibres;
const ShimKernel* kernel;
const void* arguments;
Fibre* running;
std::vector<unsigned> order;
// The next thread to start, and the end of the threads that may start.
size_t next_thread, last_thread;

// The size of shared memory of a block without opting in, on every chip.
constexpr size_t SHARED = 48 * 1024;
alignas(64) char shared_memory[SHARED];
size_t shared_used = SHARED;
struct Part {
  const void* name;
  void* memory;
};
std::vector<Part> shared_parts;

// The maximum size of dynamic shared memory on the largest chips, its first address, and its current size.
constexpr size_t GIVEN = 227 * 1024;
constexpr unsigned GIVEN_AT = 1024;
alignas(1024) char given_memory[GIVEN];
unsigned given;
// For each thread, a hash of the products that it issued.
uint64_t asked[1024];
bool has_products;

#if defined(__x86_64__)
extern "C" void shim_switch(void** save, void* to);
asm(R"(
.text
.globl shim_switch
.hidden shim_switch
.type shim_switch,@function
shim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size shim_switch,.-shim_switch
)");
void* scheduler;
void leave(Fibre* own) { shim_switch(&own->saved, scheduler); }
void enter(Fibre* fibre) { shim_switch(&scheduler, fibre->saved); }
#else
ucontext_t scheduler;
void leave(Fibre* own) { swapcontext(&own->context, &scheduler); }
void enter(Fibre* fibre) { swapcontext(&scheduler, &fibre->context); }
#endif

ShimIndex index_of(unsigned number) {
  const ShimIndex& size = shim_context.threads;
  // Most blocks are one-dimensional, and need no divisions.
  if (number < size.x) return {number, 0, 0};
  return {number % size.x, number / size.x % size.y, number / size.x / size.y};
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "stand-in driver: block (%u, %u, %u): %s\n", shim_context.block.x, shim_context.block.y,
               shim_context.block.z, what);
  std::abort();
}

// The loop of a fibre: runs threads as long as there are any.
void live() {
  for (;;) {
    Fibre* own = running;
    while (next_thread < last_thread) {
      // The fibre stores its index while it waits.
      shim_context.thread = index_of(order[next_thread++]);
      own->exchanged = 0;
      own->copies.clear();
      own->group = 0;
      own->arrived.clear();
      own->may_begin = false;
      kernel->run(arguments);
      own = running;
      if (!own->products.empty()) fail("a thread ends before its products are done");
    }
    own->wait = ENDED;
    leave(own);
  }
}

unsigned number_of(const ShimIndex& thread) {
  const ShimIndex& size = shim_context.threads;
  return (thread.z * size.y + thread.y) * size.x + thread.x;
}
unsigned warp_of(const ShimIndex& thread) { return number_of(thread) / 32; }

Fibre* new_fibre() {
  Fibre* fibre = new Fibre;
  fibre->stack = std::aligned_alloc(64, STACK);
#if defined(__x86_64__)
  void** top = reinterpret_cast<void**>(static_cast<char*>(fibre->stack) + STACK - 64);
  // A return address of 0 above the entry keeps the stack aligned as for a call.
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(live);
  for (int i = 0; i < 6; i++) *--top = nullptr;
  fibre->saved = top;
#else
  getcontext(&fibre->context);
  fibre->context.uc_stack.ss_sp = fibre->stack;
  fibre->context.uc_stack.ss_size = STACK;
  fibre->context.uc_link = nullptr;
  makecontext(&fibre->context, live, 0);
#endif
  return fibre;
}

void resume(Fibre* fibre) {
  running = fibre;
  shim_context.thread = fibre->thread;
  enter(fibre);
}

// The orders of a block's threads: ascending, descending, random over the whole block, and warp by warp, each as far as it
// can run without the others.
enum Way { NUMBERED, BACKWARDS, MIXED, BY_WARPS, WAYS };

// A random number generator (SplitMix64), which needs few instructions at the start of a launch.
class Random {
  uint64_t state;

 public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
};

void number_threads(Way way) {
  const size_t count = order.size();
  for (size_t i = 0; i < count; i++) order[i] = way == BACKWARDS ? count - 1 - i : i;
}

// Shuffles the threads, again for each block.
void mix_threads(Random& random, Way way) {
  if (way != MIXED && way != BY_WARPS) return;
  const size_t count = order.size();
  const size_t unit = way == MIXED ? 1 : 32;
  for (size_t i = count / unit; i > 1; i--) {
    const auto last = order.begin() + (i - 1) * unit;
    std::swap_ranges(last, last + unit, order.begin() + random() % i * unit);
  }
}

// Waiting threads that are resumed together.
using Group = std::vector<Fibre*>;

void resume_all(Group& group, Wait wait) {
  size_t kept = 0;
  for (Fibre* fibre : group) {
    if (fibre->wait == wait) resume(fibre);
    if (fibre->wait != ENDED) group[kept++] = fibre;
  }
  group.resize(kept);
}

// Resumes warps until all their threads wait for the block. A warp is resumed when all of its threads wait for each other.
void resume_warps(Group& group) {
  for (;;) {
    // For each warp, what its threads wait for.
    Wait waits[32] = {};
    bool any = false;
    for (const Fibre* fibre : group) {
      Wait& wait = waits[warp_of(fibre->thread)];
      if (wait != ENDED && wait != fibre->wait) fail("threads of a warp wait for different things");
      wait = fibre->wait;
      any = any || wait == WARP;
    }
    if (!any) return;
    resume_all(group, WARP);
  }
}

// The waiting groups of a block, and their number; the memory is reused for all blocks.
std::vector<Group> groups;
size_t waiting;

void run_block(Random& random, Way way) {
  // Filled with a pattern, since no kernel may rely on the content left by another block.
  std::memset(shared_memory, 0xff, shared_used);
  std::memset(given_memory, 0xff, given);
  shared_used = 0;
  shared_parts.clear();
  std::memset(asked, 0, sizeof(asked));
  has_products = false;
  mix_threads(random, way);
  const size_t count = order.size(), unit = way == BY_WARPS ? 32 : count;
  waiting = 0;
  size_t used = 0;
  for (next_thread = 0; next_thread < count;) {
    last_thread = std::min(next_thread + unit, count);
    if (waiting == groups.size()) groups.emplace_back();
    Group& group = groups[waiting];
    group.clear();
    while (next_thread < last_thread) {
      if (used == fibres.size()) fibres.push_back(new_fibre());
      Fibre* fibre = fibres[used++];
      resume(fibre);
      if (fibre->wait != ENDED) group.push_back(fibre);
    }
    resume_warps(group);
    waiting += !group.empty();
  }
  for (bool any = waiting > 0; any;) {
    any = false;
    for (size_t i = 0; i < waiting; i++) {
      resume_all(groups[i], BLOCK);
      resume_warps(groups[i]);
      any = any || !groups[i].empty();
    }
  }
  for (size_t i = 0; has_products && i < count; i++)
    if (asked[i] != asked[i / 128 * 128]) fail("threads of a group ask for different products");
}

sigjmp_buf escape;
bool can_escape;

void hold(Wait wait) {
  Fibre* own = running;
  own->thread = shim_context.thread;
  own->wait = wait;
  leave(own);
}

// The values that the lanes of each warp of a block exchange: two for each lane, since a thread may be one exchange ahead.
ShimSlot slots[2][1024];

// The order of all launches, as a number of `Way`.
const char* const always = std::getenv("KEYWAY_STAND_IN_ORDER");

// The skipped barrier, as the name of its file without folders and its line.
const char* const skipped = std::getenv("KEYWAY_STAND_IN_SKIP_BARRIER");

bool is_skipped(const char* place) {
  const char* folder = std::strrchr(place, '/');
  return std::strcmp(folder ? folder + 1 : place, skipped) == 0;
}
bool is_skipped(const char* file, int line) {
  return skipped && is_skipped((std::string(file) + ":" + std::to_string(line)).c_str());
}

void land(const Copy& copy) {
  std::memset(copy.to, 0, 16);
  if (copy.bytes) std::memcpy(copy.to, copy.from, copy.bytes);
}

void begin_copy(void* to, const void* from, unsigned bytes, bool for_products) {
  shim_check_16(from, false);
  if (bytes > 16) fail("a copy of more than 16 bytes");
  std::memset(to, 0xff, 16);
  running->copies.push_back(Copy{to, from, bytes, running->group, for_products});
}

char* given_at(unsigned address, unsigned bytes) {
  if (address < GIVEN_AT || address % bytes != 0 || address - GIVEN_AT + bytes > given) fail("no address of the launch's memory");
  return given_memory + (address - GIVEN_AT);
}

// Checks a matrix descriptor: only the 128-byte swizzle, from an address that is a multiple of 1024, with consecutive
// groups of eight rows, is emulated.
void check_matrix(unsigned long long descriptor) {
  if (descriptor >> 46 != 1 << 16 || (descriptor >> 32 & 0x3fff) != 1024 >> 4) fail("a matrix that lies otherwise than is emulated");
}
}  // namespace

void shim_barrier(const char* place) {
  if (skipped && is_skipped(place)) return;
  hold(BLOCK);
}
void shim_warp_barrier(const char* place) {
  if (skipped && is_skipped(place)) return;
  hold(WARP);
}

void shim_exchange(void* value, unsigned bytes, unsigned from) {
  Fibre* own = running;
  const unsigned number = number_of(shim_context.thread);
  ShimSlot* mine = slots[own->exchanged++ % 2];
  std::memcpy(mine[number].bytes, value, bytes);
  hold(WARP);
  std::memcpy(value, mine[number / 32 * 32 + from % 32].bytes, bytes);
}

const ShimSlot* shim_show(const void* value, unsigned bytes) {
  Fibre* own = running;
  const unsigned number = number_of(shim_context.thread);
  if (bytes > sizeof(ShimSlot)) fail("an exchange of more bytes than a slot holds");
  ShimSlot* mine = slots[own->exchanged++ % 2];
  std::memcpy(mine[number].bytes, value, bytes);
  hold(WARP);
  return mine + number / 32 * 32;
}

void shim_check_16(const void* at, bool shared) {
  if (reinterpret_cast<uintptr_t>(at) % 16 != 0) fail("an address that should be aligned to 16 bytes is not");
  const char* place = static_cast<const char*>(at);
  if (shared && !(place >= shared_memory && place + 16 <= shared_memory + SHARED)) fail("no address of shared memory");
}

void shim_copy_16(void* to, const void* from, unsigned bytes) {
  shim_check_16(to, true);
  begin_copy(to, from, bytes, false);
}

void shim_copies_begun() { running->group++; }

void shim_copies_arrived(unsigned later, const char* file, int line) {
  if (is_skipped(file, line)) return;
  std::vector<Copy> waiting;
  for (const Copy& copy : running->copies) {
    if (copy.group + later >= running->group) {
      waiting.push_back(copy);
      continue;
    }
    if (copy.for_products) running->arrived.push_back(copy);
    else land(copy);
  }
  running->copies.swap(waiting);
}

unsigned shim_shared_by_launch(unsigned bytes) {
  if (bytes > given) fail("a block shares more memory than the launch gives");
  return GIVEN_AT;
}

void shim_copy_to_shared(unsigned to, const void* from, unsigned bytes) { begin_copy(given_at(to, 16), from, bytes, true); }

void shim_written(const char* file, int line) {
  if (is_skipped(file, line)) return;
  for (const Copy& copy : running->arrived) land(copy);
  running->arrived.clear();
}

unsigned short shim_of_matrix(unsigned address) {
  unsigned short bits;
  std::memcpy(&bits, given_at(address ^ (address >> 7 & 7) << 4, 2), 2);
  return bits;
}

void shim_ask_for(const ShimGroupProduct& product) {
  Fibre* own = running;
  if (!own->may_begin) fail("a product of registers that were touched");
  if (!product.registers) check_matrix(product.left);
  check_matrix(product.right);
  has_products = true;
  uint64_t& mine = asked[number_of(shim_context.thread)];
  for (const uint64_t part : {uint64_t(product.left), uint64_t(product.right), uint64_t(product.count + product.more)})
    mine = (mine ^ part) * 0x9e3779b97f4a7c15;
  const bool is_first = std::none_of(own->products.begin(), own->products.end(),
                                     [&](const Product& other) { return other.what.sums == product.sums; });
  std::vector<float> before;
  if (is_first) {
    before.assign(product.sums, product.sums + product.count);
    std::memset(product.sums, 0xff, product.count * sizeof(float));
  }
  own->products.push_back(Product{product, std::move(before), false});
}

void shim_may_begin(const char* file, int line) {
  if (!is_skipped(file, line)) running->may_begin = true;
}

void shim_begun(const char* file, int line) {
  if (is_skipped(file, line)) return;
  for (Product& product : running->products) product.begun = true;
}

void shim_done(const char* file, int line) {
  if (is_skipped(file, line)) return;
  Fibre* own = running;
  std::vector<Product> waiting;
  for (Product& product : own->products) {
    if (!product.begun) {
      waiting.push_back(std::move(product));
      continue;
    }
    std::copy(product.before.begin(), product.before.end(), product.what.sums);
    product.what.make(product.what);
  }
  own->products.swap(waiting);
  own->may_begin = false;
}

unsigned shim_ballot(bool vote) {
  Fibre* own = running;
  const unsigned number = number_of(shim_context.thread), first = number / 32 * 32;
  const ShimIndex& size = shim_context.threads;
  ShimSlot* mine = slots[own->exchanged++ % 2];
  mine[number].bytes[0] = vote;
  hold(WARP);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32 && first + lane < size.x * size.y * size.z; lane++)
    votes |= unsigned(mine[first + lane].bytes[0] != 0) << lane;
  return votes;
}

void* shim_shared(const void* name, unsigned long long bytes) {
  for (const Part& part : shared_parts) {
    if (part.name == name) return part.memory;
  }
  const size_t rounded = (bytes + 15) / 16 * 16;
  if (shared_used + rounded > SHARED) fail("a block shares more than 48 KiB");
  void* memory = shared_memory + shared_used;
  shared_used += rounded;
  shared_parts.push_back({name, memory});
  return memory;
}

// Runs a complete launch, with `shared` bytes of dynamic shared memory for each block, and the threads of each block in an
// order determined by `seed`. Returns whether it ended normally, not by `shim_abandon`.
extern "C" __attribute__((visibility("default"))) bool shim_launch(const ShimKernel* which, ShimIndex blocks,
                                                                   ShimIndex threads, unsigned shared,
                                                                   const void* from, unsigned long long seed) {
  kernel = which;
  arguments = from;
  given = shared;
  shim_context.threads = threads;
  shim_context.blocks = blocks;
  order.resize(size_t(threads.x) * threads.y * threads.z);
  Random random(seed);
  const Way way = Way((always ? std::strtoull(always, nullptr, 10) : seed) % WAYS);
  number_threads(way);
  // The signal mask is not saved: the driver's handler blocks none.
  if (sigsetjmp(escape, 0) != 0) {
    // The stacks of unfinished threads hold objects that are not destroyed.
    fibres.clear();
    can_escape = false;
    return false;
  }
  can_escape = true;
  for (shim_context.block.z = 0; shim_context.block.z < blocks.z; shim_context.block.z++)
    for (shim_context.block.y = 0; shim_context.block.y < blocks.y; shim_context.block.y++)
      for (shim_context.block.x = 0; shim_context.block.x < blocks.x; shim_context.block.x++) run_block(random, way);
  can_escape = false;
  return true;
}

// Abandons the launch from a signal handler; returns if no launch is running.
extern "C" __attribute__((visibility("default"))) void shim_abandon() {
  if (can_escape) siglongjmp(escape, 1);
}

// The current position of the launch.
extern "C" __attribute__((visibility("default"))) const ShimContext* shim_where() { return &shim_context; }
