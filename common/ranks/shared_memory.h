// Memory that processes of one host share, of which no file is left when they
// end, however they end.
#ifndef COMMON_RANKS_SHARED_MEMORY_H_
#define COMMON_RANKS_SHARED_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace convlab {

class SharedSegment {
 public:
  // Zeros. The system gives a page when it is first written. Unavailable if it
  // refuses.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Create(int64_t bytes);
  // The memory that another process of this host, or this one, has made and
  // whose handle() it told. Unavailable if it cannot be reached: the process
  // has ended, is of another user, or runs in a container of its own.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Open(
      const std::string& handle);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  const std::string& handle() const { return handle_; }
  // Begins at a page.
  uint8_t* data() const;
  int64_t bytes() const { return bytes_; }

 private:
  SharedSegment() = default;
  absl::Status Map(int64_t bytes);

  int file_ = -1;
  void* mapped_ = nullptr;
  int64_t bytes_ = 0;
  std::string handle_;
};

}  // namespace convlab

#endif  // COMMON_RANKS_SHARED_MEMORY_H_
