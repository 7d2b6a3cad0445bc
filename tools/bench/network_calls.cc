#include "tools/bench/network_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/record/network_record.h"
#include "common/status/status.h"
#include "kernels/baseline/network.h"
#include "kernels/compiled/compiled.h"
#include "kernels/compiled/device_network.h"
#include "kernels/convolution/fastest.h"
#include "kernels/cuda/device.h"
#include "kernels/inference/inference.h"
#include "kernels/layers/layers.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;

constexpr char kOurs[] = "convlab";
constexpr char kPeer[] = "cudnn";
constexpr int64_t kFloat = sizeof(float);

int64_t ImageBytes(const NetworkCase& one) {
  return int64_t{one.images.height} * one.images.width;
}

// From bytes in host memory by a compiled network.
absl::StatusOr<NetworkCall> OurHostCall(const NetworkCase& one, int64_t count,
                                        Workers& workers) {
  ASSIGN_OR_RETURN(
      auto made,
      (one.backend == Backend::kCuda ? CompileForGpu : CompileForCpu)(
          one.network, one.weights, static_cast<int>(one.images.height),
          workers));
  const std::shared_ptr<CompiledNetwork> compiled = std::move(made);
  const int classes = one.network.Classes();
  const auto last = std::make_shared<CallAnswers>();
  last->logits.resize(count * classes);
  last->labels.resize(count);
  NetworkCall call = {kOurs, kHostPath, {}, {}, {}, compiled};
  const uint8_t* const images = one.images.pixels.data();
  call.run = [=, &workers]() -> absl::Status {
    RETURN_IF_ERROR(compiled->Run(images, count, last->logits.data()));
    // These take a thread about 18 us, for which another is worth waking.
    constexpr int64_t kAtOnce = 512;
    workers.For(count, kAtOnce, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        last->labels[i] = static_cast<uint8_t>(
            AnswerOf(&last->logits[i * classes], classes).label);
      }
    });
    return absl::OkStatus();
  };
  call.answers = [=] { return *last; };
  return call;
}

// A network in device memory, which may be other calls' too, with the buffers
// of a call.
struct OnDevice {
  std::shared_ptr<DeviceNetwork> network;
  DeviceBuffer images, logits, labels;
  cuda::PinnedBuffer host_images, host_labels;
  std::function<absl::Status(Stream)> replay;
};

absl::StatusOr<std::shared_ptr<OnDevice>> MakeOnDevice(
    std::shared_ptr<DeviceNetwork> network, int64_t count, int64_t image_bytes,
    int classes) {
  auto made = std::make_shared<OnDevice>();
  made->network = std::move(network);
  ASSIGN_OR_RETURN(made->images, DeviceBuffer::Allocate(count * image_bytes));
  ASSIGN_OR_RETURN(made->logits,
                   DeviceBuffer::Allocate(count * classes * kFloat));
  ASSIGN_OR_RETURN(made->labels, DeviceBuffer::Allocate(count));
  // No answer of an earlier call may be taken for this one's.
  RETURN_IF_ERROR(
      cuda::FillBytes(made->logits.data(), 0xff, made->logits.bytes()));
  RETURN_IF_ERROR(
      cuda::FillBytes(made->labels.data(), 0xff, made->labels.bytes()));
  return made;
}

// From images that are in device memory.
absl::StatusOr<NetworkCall> DeviceCallOf(const NetworkCase& one,
                                         std::shared_ptr<DeviceNetwork> network,
                                         Pixels pixels, int64_t count,
                                         const char* provider,
                                         Workers& workers) {
  const bool floats = pixels == Pixels::kFloats;
  const int size = one.network.image_size;
  const int64_t bytes = floats ? kFloat * size * size : ImageBytes(one);
  ASSIGN_OR_RETURN(
      const std::shared_ptr<OnDevice> device,
      MakeOnDevice(std::move(network), count, bytes, one.network.Classes()));
  const uint8_t* const images = one.images.pixels.data();
  if (floats) {
    std::vector<float> enlarged(count * size * size);
    EnlargeToFloats(images, count, static_cast<int>(one.images.height), size,
                    enlarged.data(), workers);
    RETURN_IF_ERROR(cuda::CopyToDevice(device->images.data(), enlarged.data(),
                                       device->images.bytes()));
  } else {
    RETURN_IF_ERROR(cuda::CopyToDevice(device->images.data(), images,
                                       device->images.bytes()));
  }
  DeviceCall recorded = {device->images.data(), count, device->logits.floats()};
  if (!floats) recorded.labels = static_cast<uint8_t*>(device->labels.data());
  ASSIGN_OR_RETURN(device->replay, Record(*device->network, recorded));
  NetworkCall call = {provider, floats ? kFloatsPath : kDevicePath, {}, {}, {},
                      nullptr};
  call.run = [=] { return device->replay(/*stream=*/nullptr); };
  call.answers = [=]() -> absl::StatusOr<CallAnswers> {
    CallAnswers answers;
    answers.logits.resize(device->logits.bytes() / kFloat);
    RETURN_IF_ERROR(cuda::CopyToHost(
        answers.logits.data(), device->logits.data(), device->logits.bytes()));
    if (floats) return answers;
    answers.labels.resize(count);
    RETURN_IF_ERROR(
        cuda::CopyToHost(answers.labels.data(), device->labels.data(), count));
    return answers;
  };
  return call;
}

// From bytes in host memory by a network in device memory, through pinned
// memory; the copies on the device's side are part of the graph.
absl::StatusOr<NetworkCall> HostCallOf(const NetworkCase& one,
                                       std::shared_ptr<DeviceNetwork> network,
                                       int64_t count, const char* provider,
                                       Workers& workers) {
  const int64_t bytes = count * ImageBytes(one);
  ASSIGN_OR_RETURN(const std::shared_ptr<OnDevice> device,
                   MakeOnDevice(std::move(network), count, ImageBytes(one),
                                one.network.Classes()));
  ASSIGN_OR_RETURN(device->host_images, cuda::PinnedBuffer::Allocate(bytes));
  ASSIGN_OR_RETURN(device->host_labels, cuda::PinnedBuffer::Allocate(count));
  DeviceCall recorded = {device->images.data(), count, device->logits.floats()};
  recorded.labels = static_cast<uint8_t*>(device->labels.data());
  recorded.host_images = device->host_images.data();
  recorded.host_bytes = bytes;
  recorded.host_labels = static_cast<uint8_t*>(device->host_labels.data());
  ASSIGN_OR_RETURN(device->replay, Record(*device->network, recorded));
  ASSIGN_OR_RETURN(auto own, cuda::DeviceStream::Create());
  const auto stream = std::make_shared<cuda::DeviceStream>(std::move(own));
  const auto last = std::make_shared<CallAnswers>();
  last->labels.resize(count);
  NetworkCall call = {provider, kHostPath, {}, {}, {}, nullptr};
  const uint8_t* const images = one.images.pixels.data();
  call.run = [=, &workers]() -> absl::Status {
    auto* const pinned = static_cast<uint8_t*>(device->host_images.data());
    constexpr int64_t kPart = 256 << 10;
    if (bytes <= 2 * kPart) {
      std::memcpy(pinned, images, bytes);
    } else {
      workers.For(bytes, kPart, [&](int, int64_t begin, int64_t end) {
        std::memcpy(pinned + begin, images + begin, end - begin);
      });
    }
    RETURN_IF_ERROR(device->replay(stream->get()));
    RETURN_IF_ERROR(stream->Synchronize());
    std::memcpy(last->labels.data(), device->host_labels.data(), count);
    return absl::OkStatus();
  };
  call.answers = [=] { return *last; };
  return call;
}

absl::StatusOr<NetworkCall> OurCallFrom(Pixels pixels, const NetworkCase& one,
                                        int64_t count, Workers& workers) {
  ASSIGN_OR_RETURN(
      auto network,
      CompileForDevice(one.network, one.weights,
                       static_cast<int>(one.images.height), pixels, workers));
  return DeviceCallOf(one, std::move(network), pixels, count, kOurs, workers);
}

}  // namespace

absl::StatusOr<std::vector<NetworkCall>> OurCalls(const NetworkCase& one,
                                                  int64_t count,
                                                  Workers& workers) {
  std::vector<NetworkCall> calls;
  ASSIGN_OR_RETURN(calls.emplace_back(), OurHostCall(one, count, workers));
  if (one.backend == Backend::kCpu) return calls;
  for (const Pixels pixels : {Pixels::kBytes, Pixels::kFloats}) {
    ASSIGN_OR_RETURN(calls.emplace_back(),
                     OurCallFrom(pixels, one, count, workers));
  }
  return calls;
}

absl::StatusOr<NetworkCall> OurDeviceCall(const NetworkCase& one, int64_t count,
                                          Workers& workers) {
  return OurCallFrom(Pixels::kBytes, one, count, workers);
}

absl::StatusOr<std::vector<NetworkCall>> PeerCalls(const NetworkCase& one,
                                                   int64_t count,
                                                   Workers& workers) {
  if (one.backend == Backend::kCpu) {
    return absl::UnavailableError("there is no peer on the CPU");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> plans,
                   FindBaselinePlans(one.network, count, workers));
  const auto make = [&](Pixels pixels) {
    return MakeBaselineNetwork(one.network, one.weights,
                               static_cast<int>(one.images.height), pixels,
                               count, plans);
  };
  ASSIGN_OR_RETURN(const std::shared_ptr<DeviceNetwork> bytes,
                   make(Pixels::kBytes));
  ASSIGN_OR_RETURN(const std::shared_ptr<DeviceNetwork> floats,
                   make(Pixels::kFloats));
  std::vector<NetworkCall> calls;
  ASSIGN_OR_RETURN(calls.emplace_back(),
                   HostCallOf(one, bytes, count, kPeer, workers));
  ASSIGN_OR_RETURN(
      calls.emplace_back(),
      DeviceCallOf(one, bytes, Pixels::kBytes, count, kPeer, workers));
  ASSIGN_OR_RETURN(
      calls.emplace_back(),
      DeviceCallOf(one, floats, Pixels::kFloats, count, kPeer, workers));
  for (NetworkCall& call : calls) call.plans = plans;
  return calls;
}

absl::StatusOr<std::vector<float>> LayerByLayer(const NetworkCase& one,
                                                Workers& workers) {
  InferenceOptions options;
  options.backend = one.backend;
  options.logits = true;
  const size_t convolutions = one.network.Convolutions().size();
  for (size_t i = 0; i < convolutions; ++i) {
    ASSIGN_OR_RETURN(
        options.variants.emplace_back(),
        FastestVariant(one.backend,
                       ConvolutionProblem(one.network, i, one.images.count)));
  }
  ASSIGN_OR_RETURN(InferenceResult result,
                   RunInference(one.network, one.weights, one.images,
                                one.images.count, options, workers));
  return std::move(result.logits);
}

absl::Status CheckAnswers(const CallAnswers& answers,
                          const std::vector<float>& logits, int classes) {
  double largest = 0;
  for (size_t i = 0; i < answers.logits.size(); ++i) {
    largest = std::max<double>(largest, std::fabs(logits[i]));
  }
  for (size_t i = 0; i < answers.logits.size(); ++i) {
    // Not "more than", so that NaN is refused too.
    if (std::fabs(answers.logits[i] - logits[i]) <= 1e-5 * largest) continue;
    return absl::InternalError(absl::StrCat(
        "image ", i / classes, " has the logit ", answers.logits[i],
        " for class ", i % classes, ", and layer by layer ", logits[i]));
  }
  for (size_t i = 0; i < answers.labels.size(); ++i) {
    const Answer expected = AnswerOf(&logits[i * classes], classes);
    if (answers.labels[i] == expected.label) continue;
    if (expected.close && answers.labels[i] == expected.second) continue;
    return absl::InternalError(absl::StrCat(
        "image ", i, " has the label ", static_cast<int>(answers.labels[i]),
        ", and layer by layer ", expected.label));
  }
  return absl::OkStatus();
}

}  // namespace convlab
