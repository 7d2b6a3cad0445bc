#include "kernels/baseline/cudnn_engines.h"

#include <cudnn.h>

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"

namespace convlab::cuda {
namespace {

// Names of the tensors within the graph.
enum TensorId : int64_t { kX = 1, kK, kY };

// The backend's name for a C++ type.
template <typename T>
constexpr cudnnBackendAttributeType_t TypeOf() {
  if constexpr (std::is_same_v<T, int64_t>) return CUDNN_TYPE_INT64;
  if constexpr (std::is_same_v<T, float>) return CUDNN_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
  if constexpr (std::is_same_v<T, cudnnDataType_t>) {
    return CUDNN_TYPE_DATA_TYPE;
  }
  if constexpr (std::is_same_v<T, cudnnConvolutionMode_t>) {
    return CUDNN_TYPE_CONVOLUTION_MODE;
  }
  if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) {
    return CUDNN_TYPE_HEUR_MODE;
  }
  if constexpr (std::is_same_v<T, cudnnBackendKnobType_t>) {
    return CUDNN_TYPE_KNOB_TYPE;
  }
  if constexpr (std::is_same_v<T, cudnnBackendNumericalNote_t>) {
    return CUDNN_TYPE_NUMERICAL_NOTE;
  }
}

absl::StatusOr<BackendDescriptor> Make(const Cudnn& cudnn,
                                       cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  RETURN_IF_CUDNN_ERROR(cudnn.create_backend(type, &descriptor));
  return BackendDescriptor(descriptor, cudnn.destroy_backend);
}

// A descriptor whose attributes are set one after another; Finish returns the
// first failure.
class Builder {
 public:
  Builder(const Cudnn& cudnn, cudnnBackendDescriptorType_t type)
      : cudnn_(cudnn), descriptor_(Make(cudnn, type)) {
    status_ = descriptor_.status();
  }

  template <typename T>
  Builder& Set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    return Set(name, TypeOf<T>(), values.size(), values.data());
  }
  template <typename T>
  Builder& Set(cudnnBackendAttributeName_t name, const T& value) {
    return Set(name, TypeOf<T>(), 1, &value);
  }
  Builder& SetDescriptor(cudnnBackendAttributeName_t name,
                         const BackendDescriptor& value) {
    const cudnnBackendDescriptor_t pointer = value.get();
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointer);
  }
  Builder& SetPointers(cudnnBackendAttributeName_t name,
                       const std::vector<void*>& values) {
    return Set(name, CUDNN_TYPE_VOID_PTR, values.size(), values.data());
  }

  absl::StatusOr<BackendDescriptor> Finish() {
    RETURN_IF_ERROR(status_);
    RETURN_IF_CUDNN_ERROR(cudnn_.finalize(descriptor_->get()));
    return *std::move(descriptor_);
  }

 private:
  Builder& Set(cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int64_t count,
               const void* values) {
    if (status_.ok()) {
      status_ =
          Annotate(CheckCudnn(cudnn_.set_attribute(descriptor_->get(), name,
                                                   type, count, values),
                              "cudnnBackendSetAttribute"),
                   absl::StrCat("attribute ", static_cast<int>(name)));
    }
    return *this;
  }

  const Cudnn& cudnn_;
  absl::StatusOr<BackendDescriptor> descriptor_;
  absl::Status status_;
};

// Returns the values of an attribute, at most `most` of them.
template <typename T>
absl::StatusOr<std::vector<T>> Get(const Cudnn& cudnn,
                                   const BackendDescriptor& descriptor,
                                   cudnnBackendAttributeName_t name,
                                   int64_t most) {
  std::vector<T> values(most);
  int64_t count = 0;
  RETURN_IF_CUDNN_ERROR(cudnn.get_attribute(descriptor.get(), name, TypeOf<T>(),
                                            most, &count, values.data()));
  values.resize(std::clamp<int64_t>(count, 0, most));
  return values;
}

// Returns an attribute that is a list of descriptors, which are created here
// and filled by cuDNN.
absl::StatusOr<std::vector<BackendDescriptor>> GetDescriptors(
    const Cudnn& cudnn, const BackendDescriptor& descriptor,
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
    int64_t most) {
  std::vector<BackendDescriptor> descriptors;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (int64_t i = 0; i < most; ++i) {
    ASSIGN_OR_RETURN(BackendDescriptor made, Make(cudnn, type));
    pointers.push_back(made.get());
    descriptors.push_back(std::move(made));
  }
  int64_t count = 0;
  RETURN_IF_CUDNN_ERROR(cudnn.get_attribute(descriptor.get(), name,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, most,
                                            &count, pointers.data()));
  // resize() does not work here, since a descriptor is never empty.
  while (static_cast<int64_t>(descriptors.size()) > count) {
    descriptors.pop_back();
  }
  return descriptors;
}

absl::StatusOr<BackendDescriptor> MakeBackendTensor(
    const Cudnn& cudnn, TensorId id, cudnnTensorFormat_t format,
    cudnnDataType_t type, int64_t n, int64_t c, int64_t h, int64_t w) {
  // Dimensions are in the order N, C, H, W; the strides define the layout.
  const std::vector<int64_t> strides =
      format == CUDNN_TENSOR_NCHW
          ? std::vector<int64_t>{c * h * w, h * w, w, 1}
          : std::vector<int64_t>{c * h * w, 1, c * w, c};
  return Builder(cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<int64_t>{n, c, h, w})
      .Set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{id})
      // cudaMalloc aligns to more than this, and no engine requires more.
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16})
      .Finish();
}

// Builds the graph of the one operation; the descriptors that it refers to are
// added to `parts`.
absl::StatusOr<BackendDescriptor> MakeGraph(
    const Cudnn& cudnn, const Problem& p, cudnnTensorFormat_t format,
    cudnnDataType_t type, std::vector<BackendDescriptor>& parts) {
  ASSIGN_OR_RETURN(BackendDescriptor x,
                   MakeBackendTensor(cudnn, kX, format, type, p.batch,
                                     p.channels, p.height, p.width));
  ASSIGN_OR_RETURN(BackendDescriptor k,
                   MakeBackendTensor(cudnn, kK, format, type, p.filters,
                                     p.channels, p.kernel_size, p.kernel_size));
  ASSIGN_OR_RETURN(
      BackendDescriptor y,
      MakeBackendTensor(cudnn, kY, format, type, p.batch, p.filters,
                        p.output_height(), p.output_width()));
  const std::vector<int64_t> zeros = {0, 0}, ones = {1, 1};
  ASSIGN_OR_RETURN(
      BackendDescriptor convolution,
      Builder(cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
          .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
          .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
          .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
          .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, zeros)
          .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, zeros)
          .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, ones)
          .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, ones)
          .Finish());
  ASSIGN_OR_RETURN(
      BackendDescriptor operation,
      Builder(cudnn, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
          .SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
          .SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, k)
          .SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
          .SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                         convolution)
          .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0f)
          .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0f)
          .Finish());
  auto graph = Builder(cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
                   .Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, cudnn.handle)
                   .SetDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation)
                   .Finish();
  for (BackendDescriptor* part : {&x, &k, &y, &convolution, &operation}) {
    parts.push_back(std::move(*part));
  }
  return graph;
}

// Returns the proposals of the heuristic of that mode.
absl::StatusOr<std::vector<BackendDescriptor>> Propose(
    const Cudnn& cudnn, const BackendDescriptor& graph,
    cudnnBackendHeurMode_t mode) {
  ASSIGN_OR_RETURN(
      const BackendDescriptor heuristic,
      Builder(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
          .SetDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
          .Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode)
          .Finish());
  int64_t count = 0;
  RETURN_IF_CUDNN_ERROR(
      cudnn.get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  return GetDescriptors(cudnn, heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                        CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
}

// The knobs of a configuration by number, " (k2=1 k5=0)"; empty if it has none.
absl::StatusOr<std::string> DescribeKnobs(const Cudnn& cudnn,
                                          const BackendDescriptor& config) {
  ASSIGN_OR_RETURN(
      const auto choices,
      GetDescriptors(cudnn, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                     CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                     CUDNN_KNOB_TYPE_COUNTS));
  std::vector<std::string> knobs;
  for (const BackendDescriptor& choice : choices) {
    ASSIGN_OR_RETURN(const auto type,
                     Get<cudnnBackendKnobType_t>(
                         cudnn, choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 1));
    ASSIGN_OR_RETURN(
        const auto value,
        Get<int64_t>(cudnn, choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 1));
    if (type.empty() || value.empty()) continue;
    knobs.push_back(
        absl::StrCat("k", static_cast<int>(type[0]), "=", value[0]));
  }
  if (knobs.empty()) return "";
  return absl::StrCat(" (", absl::StrJoin(knobs, " "), ")");
}

absl::StatusOr<EngineConfig> Describe(const Cudnn& cudnn,
                                      BackendDescriptor descriptor) {
  EngineConfig config = {std::move(descriptor), "", false};
  ASSIGN_OR_RETURN(
      const auto engines,
      GetDescriptors(cudnn, config.descriptor, CUDNN_ATTR_ENGINECFG_ENGINE,
                     CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1));
  if (engines.empty()) {
    return absl::InternalError(
        "cuDNN proposed a configuration without an engine");
  }
  ASSIGN_OR_RETURN(
      const auto index,
      Get<int64_t>(cudnn, engines[0], CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1));
  ASSIGN_OR_RETURN(const auto notes,
                   Get<cudnnBackendNumericalNote_t>(
                       cudnn, engines[0], CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                       CUDNN_NUMERICAL_NOTE_TYPE_COUNT));
  for (const cudnnBackendNumericalNote_t note : notes) {
    config.tensor_core |= note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                          note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  }
  ASSIGN_OR_RETURN(const std::string knobs,
                   DescribeKnobs(cudnn, config.descriptor));
  config.name = absl::StrCat("engine ", index.empty() ? -1 : index[0], knobs);
  return config;
}

}  // namespace

absl::StatusOr<ConvolutionEngines> ConvolutionEngines::Find(
    const Problem& problem, cudnnTensorFormat_t format, cudnnDataType_t type) {
  ASSIGN_OR_RETURN(const Cudnn* cudnn, OpenCudnn());
  ConvolutionEngines engines;
  ASSIGN_OR_RETURN(BackendDescriptor graph,
                   MakeGraph(*cudnn, problem, format, type, engines.graph_));
  std::set<std::string> names;
  for (const auto& [mode, mode_name] :
       {std::pair(CUDNN_HEUR_MODE_A, "heuristic mode A"),
        std::pair(CUDNN_HEUR_MODE_B, "heuristic mode B"),
        std::pair(CUDNN_HEUR_MODE_FALLBACK, "fallback heuristic")}) {
    auto proposed = Propose(*cudnn, graph, mode);
    if (!proposed.ok()) {
      engines.failures_.push_back({mode_name, proposed.status()});
      continue;
    }
    for (size_t i = 0; i < proposed->size(); ++i) {
      auto config = Describe(*cudnn, std::move((*proposed)[i]));
      if (!config.ok()) {
        engines.failures_.push_back(
            {absl::StrCat(mode_name, ", proposal ", i + 1), config.status()});
      } else if (names.insert(config->name).second) {
        engines.configs_.push_back(*std::move(config));
      }
    }
  }
  engines.graph_.push_back(std::move(graph));
  return engines;
}

absl::StatusOr<EnginePlan> EnginePlan::Create(const EngineConfig& config) {
  ASSIGN_OR_RETURN(const Cudnn* cudnn, OpenCudnn());
  ASSIGN_OR_RETURN(BackendDescriptor descriptor,
                   Builder(*cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                       .Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, cudnn->handle)
                       .SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                      config.descriptor)
                       .Finish());
  EnginePlan plan(std::move(descriptor));
  ASSIGN_OR_RETURN(const auto bytes,
                   Get<int64_t>(*cudnn, plan.plan_,
                                CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1));
  plan.workspace_bytes_ = bytes.empty() ? 0 : bytes[0];
  return plan;
}

absl::Status EnginePlan::Bind(const void* x, const void* k, void* y,
                              void* workspace) {
  ASSIGN_OR_RETURN(const Cudnn* cudnn, OpenCudnn());
  ASSIGN_OR_RETURN(
      tensors_,
      Builder(*cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
          .Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
               std::vector<int64_t>{kX, kK, kY})
          // cuDNN takes all pointers without const, but writes to y only.
          .SetPointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                       {const_cast<void*>(x), const_cast<void*>(k), y})
          .SetPointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {workspace})
          .Finish());
  return absl::OkStatus();
}

absl::Status EnginePlan::Run(cudaStream_t stream) const {
  ASSIGN_OR_RETURN(const Cudnn* cudnn, OpenCudnn());
  RETURN_IF_CUDNN_ERROR(cudnn->set_stream(cudnn->handle, stream));
  RETURN_IF_CUDNN_ERROR(
      cudnn->execute(cudnn->handle, plan_.get(), tensors_.get()));
  return absl::OkStatus();
}

}  // namespace convlab::cuda
