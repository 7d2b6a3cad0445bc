// The run record: one JSON file per run of a milestone, which holds everything
// that reports need. Samples are stored, statistics are derived.
#ifndef COMMON_RECORD_RUN_RECORD_H_
#define COMMON_RECORD_RUN_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/host.h"
#include "common/record/profile.h"
#include "common/record/usage.h"

namespace convlab {

inline constexpr char kRunRecordSchema[] = "convlab.run/1";

// One convolution of the network over the whole data set.
struct ConvolutionRecord {
  int64_t batch = 0, channels = 0, height = 0, width = 0, filters = 0,
          kernel_size = 0;
  int64_t flops = 0;      // multiplications and additions of the definition
  int64_t min_bytes = 0;  // every tensor read or written once
  std::string variant;    // a key of RunRecord::variants
  std::vector<int64_t> op_time_ns;      // one sample per repetition
  std::vector<int64_t> kernel_time_ns;  // likewise; empty on the CPU
  // What was computed with it and so is part of its times: "tanh and max
  // pooling of 2x2 with stride 2"; empty for the convolution alone.
  std::string fused = {};
  // Of a contributed kernel: from the first byte of its prolog to the output in
  // host memory, epilog included; may be empty.
  std::vector<int64_t> whole_time_ns = {};
  // Of the CPU that shared the work; absent on the GPU, of a contributed
  // kernel, and in older records.
  std::optional<int> threads = {};
};

// A kernel that a participant wrote.
struct KernelRecord {
  std::string name;              // of its file or folder, without the ending
  std::string kernel_interface;  // as the judge calls it: "mini-dnn, ..."
  std::string digest;            // SHA-256 over the content of all its files
  // What bounds it by hardware counters, in sentences; empty if none were read.
  std::vector<std::string> bound;
};

// What was found out about a variant's results before its times were believed.
struct VerificationRecord {
  // "right"; "restricted": right on the network's layers, wrong or refused on
  // other sizes; "wrong", "refused", "crashed".
  std::string outcome;
  std::vector<std::string> reason;  // empty for "right"
  double relative_error = 0;        // the largest, relative L2, against float64
  std::string accuracy_class;       // the tightest that holds
  int problems_tried = 0;
  int problems_right = 0;
  int judge_version = 0;   // rises when the judge checks more; from 1
  std::string protection;  // "bubblewrap, seccomp, limits"; empty: none
  // False if the operation's work is done elsewhere, in the prolog, say: then
  // the op time is no result and the note says why.
  bool op_time_counts = true;
  std::string op_time_note;
  std::optional<KernelRecord> kernel;  // absent for our own variants
  bool quick = false;  // only the network's own layers were tried
};

// Whether times of a variant with this outcome may stand in a ranking.
bool IsRight(const VerificationRecord& verification);

// A variant's description in reports.
struct VariantRecord {
  std::string backend;
  int rung = 0;
  std::string accuracy_class;
  std::string summary;
  std::string reason;
  // "lesson", "specialty" or "production"; empty in older records.
  std::string track;
  // Why a lesson that is slower than one before it stands in the path; or
  // empty.
  std::string detour;
  // The CPU's vector instructions for which it has code of its own and that it
  // used; empty where it has none, and in older records.
  std::string cpu_target = {};
  // Absent in older records.
  std::optional<VerificationRecord> verification = {};
};

// Whether a participant wrote the variant, and not we.
bool IsContributed(const VariantRecord& variant);

// The GPU of a run; empty for runs on the CPU.
struct GpuFacts {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int driver_version = 0;   // 13000 for 13.0, the newest CUDA it supports
  int runtime_version = 0;  // the build's CUDA version
  int multiprocessor_clock_khz = 0;  // the highest that the card allows
  int memory_clock_khz = 0;
  // Opened at run time: "cuDNN" -> "9.19.0".
  std::map<std::string, std::string> libraries;
};

// The run of one variant in a run that compares several.
struct LadderRun {
  std::string variant;  // a key of RunRecord::variants
  std::string failure;  // why it was not timed, or how it failed; or empty
  double relative_error = 0;  // the largest of its layers, against float64
  std::vector<ConvolutionRecord> convolutions;
  int64_t correct = 0;
  std::vector<int64_t> inference_ns;
  int64_t slice = 0;
  int64_t device_memory_peak_bytes = 0;
  // The correct answers of every repetition; empty in older records.
  std::vector<int64_t> repetitions_correct = {};
};

// The best of a library's algorithms on one of the network's convolutions.
struct PeerRecord {
  int layer = 0;          // from 1
  std::string library;    // "cuDNN 9.14.0"
  std::string algorithm;  // and layout, as the library calls them
  std::string accuracy_class;
  double relative_error = 0;
  int plans = 0;  // algorithms and layouts that were compared
  std::vector<int64_t> kernel_time_ns;
};

// A convolution from host memory to host memory in slices: one after the other,
// and with uploads, kernels and downloads overlapped in streams.
struct OverlapRecord {
  int layer = 0;  // from 1
  int64_t images = 0;
  int slices = 0;
  std::vector<int64_t> serial_ns;
  std::vector<int64_t> overlapped_ns;
};

// Makes a later edit of the record visible (seal.h).
struct Seal {
  std::string method;  // "sha256", or "hmac-sha256" with a key
  std::string key_id;  // tells keys apart; empty without one
  std::string digest;
};

struct RunRecord {
  std::string milestone;
  std::vector<std::string> command;
  std::string network;
  std::string model;  // the network's name as the user gave it
  std::string split;
  int64_t size = 0;    // images
  int64_t slice = 0;   // images that are processed at a time
  std::string device;  // "cpu" or "gpu"
  int threads = 0;     // of the CPU that the program may use
  // The vector instructions that kernels of the CPU may use, "avx512"; empty on
  // the GPU, and in older records.
  std::string cpu_target;
  std::string git_revision;
  std::string build_mode;
  std::string started;  // RFC 3339, UTC
  HostFacts host;
  GpuFacts gpu;

  std::string weights;  // the file's name
  std::map<std::string, std::string> weights_metadata;

  std::vector<ConvolutionRecord> convolutions;
  std::map<std::string, VariantRecord> variants;
  // Of a run that compares variants; `convolutions` is then empty.
  std::vector<LadderRun> ladder;
  std::vector<PeerRecord> peers;
  std::vector<OverlapRecord> overlaps;
  int64_t correct = 0;
  // The correct answers of every repetition; empty in older records.
  std::vector<int64_t> repetitions_correct;
  // The correct answers of these weights with a convolution that is known to be
  // right, where the milestone found that out (ExpectedCorrect).
  std::optional<int64_t> expected_correct;
  // What is wrong with the numbers of correct answers; empty if nothing is, or
  // nothing is known.
  std::string count_error;
  int64_t load_ns = 0;     // reading the data set and the weights
  int64_t prepare_ns = 0;  // and placing the weights, taking memory
  // The time of all layers, one sample per repetition.
  std::vector<int64_t> inference_ns;
  ResourceUsage usage;
  // Device memory that the network took; 0 on the CPU.
  int64_t device_memory_peak_bytes = 0;

  std::vector<std::string> output;  // standard output, line by line

  // Whether a convolution's times include what follows it. Such op times must
  // not appear in tables.
  bool fuses() const;

  // The profile of a traced run. Tracing takes time: op times of traced runs
  // must not appear in tables.
  std::optional<Profile> profile;

  // As read; WriteRunRecord replaces it.
  std::optional<Seal> seal;
};

// The number of correct answers that the run should have: what the milestone
// recorded, or what the weight file's metadata says for this many test images.
std::optional<int64_t> ExpectedCorrect(const RunRecord& record);

// "direct_tiled + whole_image", or one name where all are the same.
std::string VariantNames(const std::vector<ConvolutionRecord>& convolutions);

// What the run's convolutions used of the CPU: "2 threads, avx512", "1 thread",
// "1 to 2 threads". Of contributed kernels and in older records what they could
// use: "up to 2 threads".
std::string CpuUse(const RunRecord& record);

// The course's measure: the sum over the network's convolutions of the median
// op time, in ns. Each convolution has at least one sample.
double OpTimeSum(const std::vector<ConvolutionRecord>& convolutions);

// The floor (common/hardware/floor.h) of a convolution of the record, in ns, in
// the accuracy class of its variant and by the data sheet of the record's GPU;
// absent for a machine without a data sheet. Of several: their sum.
std::optional<double> FloorNs(const RunRecord& record,
                              const ConvolutionRecord& convolution);
std::optional<double> FloorNs(
    const RunRecord& record,
    const std::vector<ConvolutionRecord>& convolutions);

std::string ToJson(const RunRecord& record);

// Parses a file's content. A missing field keeps its default, so that older
// records stay readable. The error says that the content is not valid JSON,
// which field has the wrong type or a value that no run has (CheckValues), or
// which schema was found.
absl::StatusOr<RunRecord> ParseRunRecord(absl::string_view json);

// InvalidArgument, naming the first such field, if a value is one that no run
// has: a time that is not positive, times that add up to more than a day, a
// size below 0 or above 2^40, more correct answers than images, a share that is
// no number, convolutions that are not the network's, a variant twice in a
// ladder, samples of ours that are not as many as repetitions or less than
// their kernel's.
absl::Status CheckValues(const RunRecord& record);
// The same for a profile that another tool has written: what passes comes back
// whole from a record.
absl::Status CheckProfile(const Profile& profile);

// Write and read whole files; errors name the path. What is written is sealed,
// with the key of the environment's CONVLAB_SEAL_KEY if that is set (seal.h).
absl::Status WriteRunRecord(const std::string& path, const RunRecord& record);
absl::StatusOr<RunRecord> ReadRunRecord(const std::string& path);

}  // namespace convlab

#endif  // COMMON_RECORD_RUN_RECORD_H_
