#include "kernels/baseline/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/convolution/convolution.h"
#include "kernels/cuda/library.h"

namespace convlab {
namespace {

struct Dnnl {
  decltype(dnnl_version)* version;
  decltype(dnnl_engine_create)* create_engine;
  decltype(dnnl_stream_create)* create_stream;
  decltype(dnnl_stream_wait)* wait;
  decltype(dnnl_memory_desc_init_by_tag)* describe_memory;
  decltype(dnnl_memory_desc_get_size)* memory_size;
  decltype(dnnl_memory_create)* create_memory;
  decltype(dnnl_memory_get_data_handle)* data_of;
  decltype(dnnl_memory_destroy)* destroy_memory;
  decltype(dnnl_convolution_forward_desc_init)* describe_convolution;
  decltype(dnnl_primitive_desc_create)* create_description;
  decltype(dnnl_reorder_primitive_desc_create)* create_reorder;
  decltype(dnnl_primitive_desc_query)* query;
  decltype(dnnl_primitive_desc_query_md)* query_memory;
  decltype(dnnl_primitive_desc_destroy)* destroy_description;
  decltype(dnnl_primitive_create)* create_primitive;
  decltype(dnnl_primitive_execute)* execute;
  decltype(dnnl_primitive_destroy)* destroy_primitive;
  void (*set_threads)(int);  // OpenMP's
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  std::string version_text;
};

absl::Status Check(dnnl_status_t status, const char* call) {
  switch (status) {
    case dnnl_success:
      return absl::OkStatus();
    case dnnl_unimplemented:
      return absl::UnimplementedError(
          absl::StrCat(call, ": oneDNN does not support this"));
    case dnnl_out_of_memory:
      return absl::ResourceExhaustedError(
          absl::StrCat(call, ": out of memory"));
    default:
      return absl::InternalError(
          absl::StrCat(call, ": status ", static_cast<int>(status)));
  }
}

cuda::LibraryVersion Version(void* handle) {
  const auto version =
      reinterpret_cast<decltype(dnnl_version)*>(dlsym(handle, "dnnl_version"));
  if (version == nullptr) return {};
  return {version()->major, version()->minor, version()->patch};
}

absl::StatusOr<const Dnnl*> Load() {
  static_assert(DNNL_VERSION_MAJOR == 2, "libdnnl.so.2 is version 2's");
  // OpenMP reads this when it is loaded. A waiting thread that spins holds the
  // core that the awaited thread may need: beside other processes, layers of
  // 0.1 ms took 10 ms. A value that the user set is kept.
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  ASSIGN_OR_RETURN(const cuda::Library* library,
                   cuda::OpenLibrary({"oneDNN", "libdnnl.so.2", Version, {}}));
  auto dnnl = std::make_unique<Dnnl>();
  const auto load = [&](const char* name, auto& function) {
    return LoadFunction(*library, name, function);
  };
  RETURN_IF_ERROR(load("dnnl_version", dnnl->version));
  RETURN_IF_ERROR(load("dnnl_engine_create", dnnl->create_engine));
  RETURN_IF_ERROR(load("dnnl_stream_create", dnnl->create_stream));
  RETURN_IF_ERROR(load("dnnl_stream_wait", dnnl->wait));
  RETURN_IF_ERROR(load("dnnl_memory_desc_init_by_tag", dnnl->describe_memory));
  RETURN_IF_ERROR(load("dnnl_memory_desc_get_size", dnnl->memory_size));
  RETURN_IF_ERROR(load("dnnl_memory_create", dnnl->create_memory));
  RETURN_IF_ERROR(load("dnnl_memory_get_data_handle", dnnl->data_of));
  RETURN_IF_ERROR(load("dnnl_memory_destroy", dnnl->destroy_memory));
  RETURN_IF_ERROR(
      load("dnnl_convolution_forward_desc_init", dnnl->describe_convolution));
  RETURN_IF_ERROR(load("dnnl_primitive_desc_create", dnnl->create_description));
  RETURN_IF_ERROR(
      load("dnnl_reorder_primitive_desc_create", dnnl->create_reorder));
  RETURN_IF_ERROR(load("dnnl_primitive_desc_query", dnnl->query));
  RETURN_IF_ERROR(load("dnnl_primitive_desc_query_md", dnnl->query_memory));
  RETURN_IF_ERROR(
      load("dnnl_primitive_desc_destroy", dnnl->destroy_description));
  RETURN_IF_ERROR(load("dnnl_primitive_create", dnnl->create_primitive));
  RETURN_IF_ERROR(load("dnnl_primitive_execute", dnnl->execute));
  RETURN_IF_ERROR(load("dnnl_primitive_destroy", dnnl->destroy_primitive));
  // A function of the OpenMP library that oneDNN is linked with.
  if (dnnl->version()->cpu_runtime != DNNL_RUNTIME_OMP ||
      !load("omp_set_num_threads", dnnl->set_threads).ok()) {
    return absl::UnavailableError(absl::StrCat(
        "oneDNN in ", library->path,
        " does not run on OpenMP's threads, whose number could be set"));
  }
  RETURN_IF_ERROR(Check(dnnl->create_engine(&dnnl->engine, dnnl_cpu, 0),
                        "dnnl_engine_create"));
  RETURN_IF_ERROR(Check(dnnl->create_stream(&dnnl->stream, dnnl->engine,
                                            dnnl_stream_default_flags),
                        "dnnl_stream_create"));
  dnnl->version_text = cuda::ToString(library->version);
  return dnnl.release();
}

// Opens the library once and never closes it; a failure is permanent.
const absl::StatusOr<const Dnnl*>& Open() {
  static const auto* const dnnl = new absl::StatusOr<const Dnnl*>(Load());
  return *dnnl;
}

// The library's objects are pointers, which its functions destroy.
template <typename Pointer>
using Object =
    std::unique_ptr<std::remove_pointer_t<Pointer>, dnnl_status_t (*)(Pointer)>;
using Memory = Object<dnnl_memory_t>;
using Description = Object<dnnl_primitive_desc_t>;
using Primitive = Object<dnnl_primitive_t>;

class Implementation : public OneDnnConvolution {
 public:
  explicit Implementation(const Dnnl& dnnl, int threads)
      : dnnl_(dnnl), threads_(threads) {}

  absl::Status Prepare(const Problem& p, OneDnnLayout layout, const float* x,
                       const float* k) {
    dnnl_.set_threads(threads_);
    const dnnl_dims_t x_sizes = {p.batch, p.channels, p.height, p.width};
    const dnnl_dims_t k_sizes = {p.filters, p.channels, p.kernel_size,
                                 p.kernel_size};
    const dnnl_dims_t y_sizes = {p.batch, p.filters, p.output_height(),
                                 p.output_width()};
    const auto any = dnnl_format_tag_any;
    const auto tag = layout == OneDnnLayout::kNchw ? dnnl_nchw : any;
    ASSIGN_OR_RETURN(const auto x_wanted, Describe(x_sizes, tag));
    ASSIGN_OR_RETURN(const auto k_wanted, Describe(k_sizes, any));
    ASSIGN_OR_RETURN(const auto y_wanted, Describe(y_sizes, tag));
    ASSIGN_OR_RETURN(const auto x_plain, Describe(x_sizes, dnnl_nchw));
    ASSIGN_OR_RETURN(const auto k_plain, Describe(k_sizes, dnnl_oihw));
    ASSIGN_OR_RETURN(y_plain_, Describe(y_sizes, dnnl_nchw));
    const dnnl_dims_t ones = {1, 1}, zeros = {0, 0};
    dnnl_convolution_desc_t convolution;
    RETURN_IF_ERROR(Check(
        dnnl_.describe_convolution(&convolution, dnnl_forward_inference,
                                   dnnl_convolution_auto, &x_wanted, &k_wanted,
                                   nullptr, &y_wanted, ones, zeros, zeros),
        "dnnl_convolution_forward_desc_init"));
    dnnl_primitive_desc_t created = nullptr;
    RETURN_IF_ERROR(
        Check(dnnl_.create_description(&created, &convolution, nullptr,
                                       dnnl_.engine, nullptr),
              "dnnl_primitive_desc_create"));
    const Description description(created, dnnl_.destroy_description);
    const char* name = nullptr;
    RETURN_IF_ERROR(Check(dnnl_.query(created, dnnl_query_impl_info_str, 0,
                                      static_cast<void*>(&name)),
                          "dnnl_primitive_desc_query"));
    name_ = name == nullptr ? "" : name;
    y_described_ = *dnnl_.query_memory(created, dnnl_query_dst_md, 0);
    ASSIGN_OR_RETURN(
        x_, Reorder(x_plain, x,
                    *dnnl_.query_memory(created, dnnl_query_src_md, 0)));
    ASSIGN_OR_RETURN(
        k_, Reorder(k_plain, k,
                    *dnnl_.query_memory(created, dnnl_query_weights_md, 0)));
    ASSIGN_OR_RETURN(y_, Allocate(y_described_, DNNL_MEMORY_ALLOCATE));
    ASSIGN_OR_RETURN(primitive_, Make(created));
    return absl::OkStatus();
  }

  absl::Status Run() override {
    dnnl_.set_threads(threads_);
    return Execute(primitive_.get(), {{DNNL_ARG_SRC, x_.get()},
                                      {DNNL_ARG_WEIGHTS, k_.get()},
                                      {DNNL_ARG_DST, y_.get()}});
  }

  void Poison() override {
    void* data = nullptr;
    if (dnnl_.data_of(y_.get(), &data) == dnnl_success) {
      std::memset(data, kPoison, dnnl_.memory_size(&y_described_));
    }
  }

  absl::Status Read(float* y) override {
    ASSIGN_OR_RETURN(const Memory out, Allocate(y_plain_, y));
    return Copy(y_described_, y_.get(), y_plain_, out.get());
  }

  const std::string& implementation() const override { return name_; }

 private:
  absl::StatusOr<dnnl_memory_desc_t> Describe(const dnnl_dims_t& sizes,
                                              dnnl_format_tag_t tag) {
    dnnl_memory_desc_t described;
    RETURN_IF_ERROR(
        Check(dnnl_.describe_memory(&described, 4, sizes, dnnl_f32, tag),
              "dnnl_memory_desc_init_by_tag"));
    return described;
  }

  // Uses the given memory, or allocates with DNNL_MEMORY_ALLOCATE.
  absl::StatusOr<Memory> Allocate(const dnnl_memory_desc_t& described,
                                  void* data) {
    dnnl_memory_t memory = nullptr;
    RETURN_IF_ERROR(
        Check(dnnl_.create_memory(&memory, &described, dnnl_.engine, data),
              "dnnl_memory_create"));
    return Memory(memory, dnnl_.destroy_memory);
  }

  absl::StatusOr<Primitive> Make(dnnl_primitive_desc_t description) {
    dnnl_primitive_t primitive = nullptr;
    RETURN_IF_ERROR(Check(dnnl_.create_primitive(&primitive, description),
                          "dnnl_primitive_create"));
    return Primitive(primitive, dnnl_.destroy_primitive);
  }

  absl::Status Execute(dnnl_primitive_t primitive,
                       const std::vector<dnnl_exec_arg_t>& arguments) {
    RETURN_IF_ERROR(Check(
        dnnl_.execute(primitive, dnnl_.stream,
                      static_cast<int>(arguments.size()), arguments.data()),
        "dnnl_primitive_execute"));
    return Check(dnnl_.wait(dnnl_.stream), "dnnl_stream_wait");
  }

  absl::Status Copy(const dnnl_memory_desc_t& from_described,
                    dnnl_memory_t from, const dnnl_memory_desc_t& to_described,
                    dnnl_memory_t to) {
    dnnl_primitive_desc_t created = nullptr;
    RETURN_IF_ERROR(
        Check(dnnl_.create_reorder(&created, &from_described, dnnl_.engine,
                                   &to_described, dnnl_.engine, nullptr),
              "dnnl_reorder_primitive_desc_create"));
    const Description description(created, dnnl_.destroy_description);
    ASSIGN_OR_RETURN(const Primitive primitive, Make(created));
    return Execute(primitive.get(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  // Copies a plain tensor to another layout.
  absl::StatusOr<Memory> Reorder(const dnnl_memory_desc_t& plain,
                                 const float* values,
                                 const dnnl_memory_desc_t& wanted) {
    // The library only reads it.
    ASSIGN_OR_RETURN(const Memory from,
                     Allocate(plain, const_cast<float*>(values)));
    ASSIGN_OR_RETURN(Memory to, Allocate(wanted, DNNL_MEMORY_ALLOCATE));
    RETURN_IF_ERROR(Copy(plain, from.get(), wanted, to.get()));
    return to;
  }

  const Dnnl& dnnl_;
  const int threads_;
  std::string name_;
  dnnl_memory_desc_t y_plain_, y_described_;
  Memory x_{nullptr, nullptr}, k_{nullptr, nullptr}, y_{nullptr, nullptr};
  Primitive primitive_{nullptr, nullptr};
};

}  // namespace

absl::StatusOr<std::string> OpenOneDnn() {
  ASSIGN_OR_RETURN(const Dnnl* dnnl, Open());
  return dnnl->version_text;
}

absl::StatusOr<std::unique_ptr<OneDnnConvolution>> OneDnnConvolution::Create(
    const Problem& problem, OneDnnLayout layout, int threads, const float* x,
    const float* k) {
  RETURN_IF_ERROR(CheckProblem(problem));
  ASSIGN_OR_RETURN(const Dnnl* dnnl, Open());
  auto convolution = std::make_unique<Implementation>(*dnnl, threads);
  RETURN_IF_ERROR(convolution->Prepare(problem, layout, x, k));
  return convolution;
}

}  // namespace convlab
