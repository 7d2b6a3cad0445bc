// The devices on which classify runs, and the workers that they are.
#ifndef MILESTONES_CLASSIFYING_DEVICE_H_
#define MILESTONES_CLASSIFYING_DEVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/hardware/rates.h"
#include "common/network/network.h"
#include "common/record/classify_record.h"
#include "common/weights/weights.h"
#include "milestones/classifying/options.h"
#include "milestones/classifying/worker.h"

namespace convlab {

// A GPU, or a share of the CPU's threads.
struct ClassifyDevice {
  bool gpu = false;
  int index = 0;           // of the GPUs, or of the shares
  int threads = 1;         // of the host
  std::string text;        // "the GPU, NVIDIA H200", "GPU 1, NVIDIA H200"
  std::string pci_bus_id;  // of a GPU
  // The GPU's model, or the CPU's vector instructions, on which bits depend.
  std::string model;
};

// The devices that the user asked for, by default a GPU if there is one;
// `local_rank` is this process's number among those of the machine, which take
// different GPUs. Unavailable, with the alternatives, if they are not there;
// InvalidArgument if the user asked for workers of the CPU and they are GPUs.
absl::StatusOr<std::vector<ClassifyDevice>> ChooseDevices(
    const ClassifyOptions& options, int local_rank);

// What a worker needs besides its feed. What it refers to must outlive it.
struct WorkerJob {
  const Network& network;
  const NetworkWeights& weights;
  int image_size;
  WorkerOptions options;
  bool stages;  // whether the times of the stages are asked for
  // Of a piece's images. On a GPU they are read to page-locked memory of so
  // many bytes, from which they are uploaded; 0: the feed says where they are.
  int64_t piece_bytes;
  // The images that a GPU computes at once (GpuPieceImages); 0: as many as it
  // has the memory for.
  int64_t gpu_piece;
  // Called when the network is compiled; a worker begins when it returns.
  std::function<void()> compiled;
};

struct WorkerResult {
  absl::Status status;  // not OK: the worker is lost
  ClassifyShare share;
  std::vector<int64_t> stage_ns;           // CompiledNetwork::StageNs
  int64_t stage_images = 0;                // CompiledNetwork::StageImages
  std::vector<std::string> stage_kernels;  // CompiledNetwork::StageKernels
};

// The least GpuPieceImages of the GPUs that can be asked; 0 if none can. What
// is wrong with the others is told by their workers, which may be lost.
int64_t GpuPieceOf(const std::vector<ClassifyDevice>& devices,
                   const Network& network);

// Compiles the network for the device in the calling thread, and works on
// pieces of the feed as its worker of that number.
WorkerResult RunWorker(const ClassifyDevice& device, const WorkerJob& job,
                       PieceFeed& feed, int worker);

// The rates of float32 and memory that the device reaches now, by short
// measurements. On a GPU float32 is what three products of halves give, if that
// is more than multiply-adds in float32.
absl::StatusOr<Rates> MeasureRates(const ClassifyDevice& device);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_DEVICE_H_
