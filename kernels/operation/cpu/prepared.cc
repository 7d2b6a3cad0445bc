#include "kernels/operation/cpu/prepared.h"

#include <utility>
#include <vector>

#include "common/status/status.h"
#include "kernels/operation/cpu/general.h"
#include "kernels/operation/cpu/plain.h"

namespace convlab::cpu {
namespace {

const float* Floats(const void* tensor) {
  return static_cast<const float*>(tensor);
}

class GeneralOnCpu : public PreparedOperation {
 public:
  GeneralOnCpu(const Operation& operation, Workers& workers)
      : PreparedOperation(operation),
        convolution_(operation, workers),
        filters_(operation.kernel_elements()) {}

  absl::Status Run(const Tensors& tensors, Stream stream) override {
    Tensors prepared = tensors;
    prepared.k = filters_.data();
    RETURN_IF_ERROR(PrepareFilters(tensors.k, filters_.data(), stream));
    return RunPrepared(prepared, stream);
  }

  absl::Status PrepareFilters(const void* k, void* filters, Stream) override {
    convolution_.PrepareFilters(Floats(k), static_cast<float*>(filters));
    return absl::OkStatus();
  }

  absl::Status RunPrepared(const Tensors& tensors, Stream) override {
    convolution_.Run(Floats(tensors.x), Floats(tensors.k), Floats(tensors.bias),
                     static_cast<float*>(tensors.y));
    return absl::OkStatus();
  }

 private:
  GeneralConvolution convolution_;
  std::vector<float> filters_;  // of a Run
};

class ConvertedOnCpu : public PreparedOperation {
 public:
  ConvertedOnCpu(const Operation& operation, Workers& workers,
                 std::unique_ptr<PreparedOperation> plain)
      : PreparedOperation(operation),
        operation_(operation),
        workers_(workers),
        plain_(std::move(plain)),
        x_(operation.input_elements()),
        k_(operation.halves ? operation.kernel_elements() : 0),
        bias_(operation.halves && operation.bias ? operation.filters : 0),
        y_(operation.output_elements()) {
    kernel_ = plain_->kernel();
    accuracy_ = operation.halves ? AccuracyClass::kFp16 : plain_->accuracy();
    estimated_ns_ = plain_->estimated_ns();
    filter_bytes_ = plain_->filter_bytes();
  }

  absl::Status Run(const Tensors& tensors, Stream stream) override {
    Tensors plain = tensors;
    plain.k = PlainFilters(tensors.k);
    return RunPlain(tensors, plain, &PreparedOperation::Run, stream);
  }

  absl::Status PrepareFilters(const void* k, void* filters,
                              Stream stream) override {
    return plain_->PrepareFilters(PlainFilters(k), filters, stream);
  }

  absl::Status RunPrepared(const Tensors& tensors, Stream stream) override {
    return RunPlain(tensors, tensors, &PreparedOperation::RunPrepared, stream);
  }

 private:
  using RunFunction = absl::Status (PreparedOperation::*)(const Tensors&,
                                                          Stream);

  const void* PlainFilters(const void* k) {
    if (!operation_.halves) return k;
    MakePlain({1, 1, operation_.kernel_elements(), false, true}, k, k_.data(),
              workers_);
    return k_.data();
  }

  // `plain` has its filters, and gets its other tensors.
  absl::Status RunPlain(const Tensors& tensors, Tensors plain, RunFunction run,
                        Stream stream) {
    const Operation& o = operation_;
    MakePlain(
        {o.batch, o.channels, o.height * o.width, o.channels_last, o.halves},
        tensors.x, x_.data(), workers_);
    plain.x = x_.data();
    plain.y = y_.data();
    if (o.halves && o.bias) {
      MakePlain({1, 1, o.filters, false, true}, tensors.bias, bias_.data(),
                workers_);
      plain.bias = bias_.data();
    }
    RETURN_IF_ERROR(((*plain_).*run)(plain, stream));
    StorePlain({o.batch, o.filters, o.output_height() * o.output_width(),
                o.channels_last, o.halves},
               y_.data(), tensors.y, workers_);
    return absl::OkStatus();
  }

  const Operation operation_;
  Workers& workers_;
  const std::unique_ptr<PreparedOperation> plain_;
  std::vector<float> x_, k_, bias_, y_;
};

}  // namespace

std::unique_ptr<PreparedOperation> PrepareGenerally(const Operation& operation,
                                                    Workers& workers) {
  return std::make_unique<GeneralOnCpu>(operation, workers);
}

std::unique_ptr<PreparedOperation> Converted(
    const Operation& operation, Workers& workers,
    std::unique_ptr<PreparedOperation> plain) {
  return std::make_unique<ConvertedOnCpu>(operation, workers, std::move(plain));
}

}  // namespace convlab::cpu
