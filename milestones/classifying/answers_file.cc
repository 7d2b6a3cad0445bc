#include "milestones/classifying/answers_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
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

std::string Header(AnswersFormat format, int64_t count, int classes) {
  if (format == AnswersFormat::kCsv) return "";
  return format == AnswersFormat::kIdx ? IdxHeader(count, classes)
                                       : NpyHeader(count, classes);
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

std::string RunStatePath(const std::string& answers) {
  return answers + ".run";
}

absl::StatusOr<std::unique_ptr<AnswersFile>> AnswersFile::Create(
    const std::string& path, AnswersFormat format, int64_t count, int classes) {
  auto answers =
      std::unique_ptr<AnswersFile>(new AnswersFile(path, format, classes));
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  answers->atomic_.emplace(std::move(file));
  RETURN_IF_ERROR(answers->Write(Header(format, count, classes)));
  return answers;
}

absl::StatusOr<std::unique_ptr<AnswersFile>> AnswersFile::Grow(
    const std::string& path, AnswersFormat format, int classes, int64_t bytes) {
  auto answers =
      std::unique_ptr<AnswersFile>(new AnswersFile(path, format, classes));
  RETURN_IF_ERROR(answers->Open(bytes));
  return answers;
}

absl::Status AnswersFile::Open(int64_t bytes) {
  RETURN_IF_ERROR(CheckWritable(path_));
  growing_.reset(std::fopen(path_.c_str(), bytes > 0 ? "r+b" : "w+b"));
  if (growing_ == nullptr) return FileError("write", path_, errno);
  // What is written is in the file, and nothing else.
  std::setvbuf(growing_.get(), nullptr, _IONBF, 0);
  if (bytes == 0) return Write(Header(format_, 0, classes_));
  struct stat info;
  if (fstat(fileno(growing_.get()), &info) != 0) {
    return FileError("read", path_, errno);
  }
  if (info.st_size < bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " has ", info.st_size, " bytes, expected ", bytes,
                     " at least, which an earlier run wrote"));
  }
  if (ftruncate(fileno(growing_.get()), bytes) != 0 ||
      std::fseek(growing_.get(), 0, SEEK_END) != 0) {
    return FileError("write", path_, errno);
  }
  written_ = bytes;
  return absl::OkStatus();
}

absl::Status AnswersFile::Write(absl::string_view text) {
  if (atomic_.has_value()) return atomic_->Write(text);
  if (std::fwrite(text.data(), 1, text.size(), growing_.get()) == text.size()) {
    written_ += static_cast<int64_t>(text.size());
    return absl::OkStatus();
  }
  return FileError("write", path_, errno);
}

absl::StatusOr<int64_t> AnswersFile::Save(int64_t count) {
  // A header has as many bytes for any number of images.
  const std::string header = Header(format_, count, classes_);
  std::FILE* const file = growing_.get();
  if (std::fseek(file, 0, SEEK_SET) != 0 ||
      std::fwrite(header.data(), 1, header.size(), file) != header.size() ||
      ftruncate(fileno(file), written_) != 0 ||
      std::fseek(file, 0, SEEK_END) != 0 || fdatasync(fileno(file)) != 0) {
    return FileError("write", path_, errno);
  }
  return written_;
}

absl::Status AnswersFile::Commit() { return atomic_->Commit(); }

absl::Status AnswersFile::WriteLabels(absl::Span<const uint8_t> labels) {
  text_.clear();
  if (format_ == AnswersFormat::kCsv) {
    for (const uint8_t label : labels) absl::StrAppend(&text_, label, "\n");
  } else {
    text_.append(labels.begin(), labels.end());
  }
  return Write(text_);
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
  return Write(text_);
}

}  // namespace convlab
