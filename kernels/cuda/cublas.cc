#include "kernels/cuda/cublas.h"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/cuda/library.h"

namespace convlab::cuda {
namespace {

struct Functions {
  decltype(cublasCreate_v2)* create = nullptr;
  decltype(cublasDestroy_v2)* destroy = nullptr;
  decltype(cublasSetMathMode)* set_math_mode = nullptr;
  decltype(cublasSetStream_v2)* set_stream = nullptr;
  decltype(cublasGetStatusString)* status_string = nullptr;
  decltype(cublasSgemm_v2)* sgemm = nullptr;
  decltype(cublasSgemmStridedBatched)* sgemm_batched = nullptr;
};

LibraryVersion Version(void* handle) {
  LibraryVersion version = {};
  const auto get_property = reinterpret_cast<decltype(cublasGetProperty)*>(
      dlsym(handle, "cublasGetProperty"));
  if (get_property == nullptr) return version;
  const libraryPropertyType parts[] = {MAJOR_VERSION, MINOR_VERSION,
                                       PATCH_LEVEL};
  for (int i = 0; i < 3; ++i) get_property(parts[i], &version[i]);
  return version;
}

absl::Status Load(Functions& functions) {
  // Handles and enumerations are those of this header's major version.
  static const std::string* const file =
      new std::string(absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR));
  static const std::string* const part =
      new std::string(absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR));
  ASSIGN_OR_RETURN(
      const Library* library,
      OpenLibrary({"cuBLAS", file->c_str(), Version, {part->c_str()}}));
  RETURN_IF_ERROR(LoadFunction(*library, "cublasCreate_v2", functions.create));
  RETURN_IF_ERROR(
      LoadFunction(*library, "cublasDestroy_v2", functions.destroy));
  RETURN_IF_ERROR(
      LoadFunction(*library, "cublasSetMathMode", functions.set_math_mode));
  RETURN_IF_ERROR(
      LoadFunction(*library, "cublasSetStream_v2", functions.set_stream));
  RETURN_IF_ERROR(
      LoadFunction(*library, "cublasGetStatusString", functions.status_string));
  RETURN_IF_ERROR(LoadFunction(*library, "cublasSgemm_v2", functions.sgemm));
  return LoadFunction(*library, "cublasSgemmStridedBatched",
                      functions.sgemm_batched);
}

struct Opened {
  Opened() : reason(Load(functions).message()) {}
  Functions functions;
  const std::string reason;  // empty if nothing is missing
};

// Opens the library once; a failure is permanent.
const Opened& Open() {
  static const Opened* const opened = new Opened;
  return *opened;
}

Error Check(cublasStatus_t code, const char* call) {
  if (code == CUBLAS_STATUS_SUCCESS) return {};
  return {call, Open().functions.status_string(code),
          code == CUBLAS_STATUS_ALLOC_FAILED};
}

}  // namespace

const char* WhyNoCublas() {
  const std::string& reason = Open().reason;
  return reason.empty() ? nullptr : reason.c_str();
}

Cublas::~Cublas() {
  if (handle_ != nullptr) {
    Open().functions.destroy(static_cast<cublasHandle_t>(handle_));
  }
}

Error Cublas::Create() {
  if (const char* reason = WhyNoCublas()) return {"cuBLAS", reason};
  cublasHandle_t handle = nullptr;
  RETURN_IF_FAILED(Check(Open().functions.create(&handle), "cublasCreate"));
  handle_ = handle;
  return Check(Open().functions.set_math_mode(handle, CUBLAS_PEDANTIC_MATH),
               "cublasSetMathMode");
}

Error Cublas::Multiply(const MatrixProduct& product, const float* a,
                       const float* b, float* c, cudaStream_t stream) {
  const int64_t c_pitch =
      product.c_pitch > 0 ? product.c_pitch : product.columns;
  if (std::max({product.rows, product.columns, product.depth, product.count,
                c_pitch}) > std::numeric_limits<int>::max()) {
    return {"cublasSgemm", "a dimension is above 2^31 - 1"};
  }
  // cuBLAS expects column-major matrices. Read as such, a row-major matrix is
  // its transpose, and the transpose of A * B is B' * A'.
  const int m = product.columns, n = product.rows, k = product.depth;
  const cublasOperation_t b_operation =
      product.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int b_pitch = product.b_transposed ? k : m;
  const float one = 1;
  const auto handle = static_cast<cublasHandle_t>(handle_);
  RETURN_IF_FAILED(
      Check(Open().functions.set_stream(handle, stream), "cublasSetStream"));
  if (product.count == 1) {
    return Check(
        Open().functions.sgemm(handle, b_operation, CUBLAS_OP_N, m, n, k, &one,
                               b, b_pitch, a, k, &product.beta, c, c_pitch),
        "cublasSgemm");
  }
  return Check(Open().functions.sgemm_batched(
                   handle, b_operation, CUBLAS_OP_N, m, n, k, &one, b, b_pitch,
                   product.b_stride, a, k, product.a_stride, &product.beta, c,
                   c_pitch, product.c_stride, product.count),
               "cublasSgemmStridedBatched");
}

}  // namespace convlab::cuda
