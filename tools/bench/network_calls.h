// What a benchmark of whole networks calls: a network with a number of images,
// by ours and by a library's kernels, from host memory and on the device.
#ifndef TOOLS_BENCH_NETWORK_CALLS_H_
#define TOOLS_BENCH_NETWORK_CALLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/idx.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "kernels/compiled/compiled.h"
#include "kernels/convolution/convolution.h"

namespace convlab {

// What a call answered. The labels are those of logits that it has itself.
struct CallAnswers {
  std::vector<float> logits;    // [images, classes]; empty: it has none here
  std::vector<uint8_t> labels;  // [images]; empty: it gives none
};

struct NetworkCall {
  std::string provider, path;  // as in NetworkRow
  // From host memory it returns when the labels are there; otherwise it queues
  // the work in the default stream.
  std::function<absl::Status()> run;
  // The answers of the last run.
  std::function<absl::StatusOr<CallAnswers>()> answers;
  std::vector<std::string> plans;  // as in NetworkRow
  // Null if the call has no stages of its own.
  std::shared_ptr<const CompiledNetwork> compiled;
};

// A network with its weights, and images of 28 x 28 bytes.
struct NetworkCase {
  const Network& network;
  const NetworkWeights& weights;
  const ImageSet& images;
  Backend backend;
};

// Our calls with the first `count` images: from host memory, and on the GPU the
// others. The case and the workers must outlive them.
absl::StatusOr<std::vector<NetworkCall>> OurCalls(const NetworkCase& one,
                                                  int64_t count,
                                                  Workers& workers);

// That of them whose images and answers are in the memory of the current GPU.
absl::StatusOr<NetworkCall> OurDeviceCall(const NetworkCase& one, int64_t count,
                                          Workers& workers);

// The same by cuDNN and cuBLAS, layer by layer, each call as one CUDA graph.
// Unavailable if they are missing.
absl::StatusOr<std::vector<NetworkCall>> PeerCalls(const NetworkCase& one,
                                                   int64_t count,
                                                   Workers& workers);

// The logits layer by layer of all images, by the variants that `final` takes.
absl::StatusOr<std::vector<float>> LayerByLayer(const NetworkCase& one,
                                                Workers& workers);

// Internal, naming the first image, unless the answers are those of `logits`
// [images, classes], of which there may be more: labels are equal, except where
// float32 cannot tell the two largest logits apart (AnswerOf), and logits
// differ by at most 1e-5 of the largest.
absl::Status CheckAnswers(const CallAnswers& answers,
                          const std::vector<float>& logits, int classes);

}  // namespace convlab

#endif  // TOOLS_BENCH_NETWORK_CALLS_H_
