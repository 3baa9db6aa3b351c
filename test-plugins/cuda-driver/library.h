// Shared code of the stand-ins for NVIDIA's libraries: the interface to the driver next to them, the live handles, and
// conversions of elements to numbers.
#pragma once
#include <dlfcn.h>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

namespace {
std::mutex lock;
// The handles that were created and not destroyed.
std::set<const void*> live;

struct Driver {
  bool (*fails)(const char*);
  int (*device)();
  int (*give)(void*, int (*)(void*), void*, void (*)(void*));
  bool (*holds)(uintptr_t, size_t);
};
const Driver* driver() {
  static Driver found;
  static const bool is_there = [] {
    Dl_info own;
    if (!dladdr(reinterpret_cast<void*>(&driver), &own)) return false;
    std::string path(own.dli_fname);
    path = path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    found.fails = reinterpret_cast<bool (*)(const char*)>(dlsym(library, "stand_in_fails"));
    found.device = reinterpret_cast<int (*)()>(dlsym(library, "stand_in_device"));
    found.give = reinterpret_cast<decltype(found.give)>(dlsym(library, "stand_in_give"));
    found.holds = reinterpret_cast<bool (*)(uintptr_t, size_t)>(dlsym(library, "stand_in_holds"));
    return found.fails && found.device && found.give && found.holds;
  }();
  return is_there ? &found : nullptr;
}

// Each function begins with this macro: its name, and its return values if there is no driver, and if it is configured to
// fail.
#define ENTER_OR(name, no_driver, failed)  \
  std::lock_guard<std::mutex> guard(lock); \
  if (!driver()) return no_driver;         \
  if (driver()->fails(#name)) return failed;

template <class T>
void* make(T value) {
  void* const made = new T(value);
  live.insert(made);
  return made;
}
// Whether the handle existed.
template <class T>
bool destroy(void* handle) {
  if (!live.erase(handle)) return false;
  delete static_cast<T*>(handle);
  return true;
}

struct Bf16 {
  uint16_t bits;
};
template <class T>
struct Value {
  static T of(T x) { return x; }
  static T to(T x) { return x; }
};
template <>
struct Value<_Float16> {
  static float of(_Float16 x) { return float(x); }
  static _Float16 to(float x) { return _Float16(x); }
};
template <>
struct Value<Bf16> {
  static float of(Bf16 x) {
    const uint32_t bits = uint32_t(x.bits) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  static Bf16 to(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if (x != x) return {uint16_t(bits >> 16 | 0x40)};
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  }
};

// f32 as a factor of TF32: rounded to 10 bits after the leading one.
struct Tf32 {
  float value;
};
template <>
struct Value<Tf32> {
  static float of(Tf32 x) { return x.value; }
  static Tf32 to(float x) { return {x}; }
};
template <class T>
auto factor_of(const T& x) { return Value<T>::of(x); }
template <>
auto factor_of<Tf32>(const Tf32& x) {
  uint32_t bits;
  std::memcpy(&bits, &x.value, 4);
  if (x.value == x.value) bits = (bits + 0x1000) & ~0x1fffu;
  float rounded;
  std::memcpy(&rounded, &bits, 4);
  return rounded;
}
}  // namespace
