#include "milestones/classifying/answers_file.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace convlab {
namespace {

void AppendBigEndian(uint32_t value, std::string& text) {
  for (const int shift : {24, 16, 8, 0}) {
    text += static_cast<char>(value >> shift & 0xff);
  }
}

void AppendLittleEndian(uint32_t value, std::string& text) {
  for (const int shift : {0, 8, 16, 24}) {
    text += static_cast<char>(value >> shift & 0xff);
  }
}

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

std::string IdxHeader(int64_t count, int classes) {
  std::string header;
  AppendBigEndian(classes == 0 ? 0x00000801 : 0x00000D02, header);
  AppendBigEndian(static_cast<uint32_t>(count), header);
  if (classes > 0) AppendBigEndian(classes, header);
  return header;
}

// The dictionary ends with a newline, so that the data begin at a multiple of
// 64 bytes.
std::string NpyHeader(int64_t count, int classes) {
  std::string dictionary =
      absl::StrCat("{'descr': '", classes == 0 ? "|u1" : "<f4",
                   "', 'fortran_order': False, 'shape': (", count, ",",
                   classes == 0 ? "" : absl::StrCat(" ", classes), "), }");
  constexpr size_t kBefore = 10, kAlign = 64;
  while ((kBefore + dictionary.size() + 1) % kAlign != 0) dictionary += ' ';
  dictionary += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace

absl::StatusOr<AnswersFormat> FormatOf(absl::string_view path) {
  if (absl::EndsWith(path, ".idx")) return AnswersFormat::kIdx;
  if (absl::EndsWith(path, ".csv")) return AnswersFormat::kCsv;
  if (absl::EndsWith(path, ".npy")) return AnswersFormat::kNpy;
  return absl::InvalidArgumentError(
      absl::StrCat("--out is '", path,
                   "', expected a name that ends with .idx, .csv or "
                   ".npy"));
}

absl::StatusOr<std::unique_ptr<AnswersFile>> AnswersFile::Create(
    const std::string& path, AnswersFormat format, int64_t count, int classes) {
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  if (format != AnswersFormat::kCsv) {
    RETURN_IF_ERROR(file.Write(format == AnswersFormat::kIdx
                                   ? IdxHeader(count, classes)
                                   : NpyHeader(count, classes)));
  }
  return std::unique_ptr<AnswersFile>(
      new AnswersFile(std::move(file), format, classes));
}

absl::Status AnswersFile::WriteLabels(absl::Span<const uint8_t> labels) {
  text_.clear();
  if (format_ == AnswersFormat::kCsv) {
    for (const uint8_t label : labels) absl::StrAppend(&text_, label, "\n");
  } else {
    text_.append(labels.begin(), labels.end());
  }
  return file_.Write(text_);
}

absl::Status AnswersFile::WriteLogits(absl::Span<const float> logits) {
  text_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (format_ == AnswersFormat::kCsv) {
      const bool last = (i + 1) % classes_ == 0;
      absl::StrAppendFormat(&text_, "%.9g%c", logits[i], last ? '\n' : ',');
    } else if (format_ == AnswersFormat::kIdx) {
      AppendBigEndian(BitsOf(logits[i]), text_);
    } else {
      AppendLittleEndian(BitsOf(logits[i]), text_);
    }
  }
  return file_.Write(text_);
}

}  // namespace convlab
