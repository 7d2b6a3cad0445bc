#include "convlab/interface_testing.h"

#include <cstdlib>
#include <new>

namespace convlab {

std::atomic<int64_t> allocations{0};

}  // namespace convlab

void* operator new(std::size_t bytes) {
  ++convlab::allocations;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// That of std::stable_sort, among others.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++convlab::allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
