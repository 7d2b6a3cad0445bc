#include "common/dataset/image_files.h"

#include <glob.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace convlab {

absl::StatusOr<std::unique_ptr<ImageFiles>> ImageFiles::Open(
    const std::vector<std::string>& paths) {
  std::vector<std::unique_ptr<IdxImageStream>> files;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(files.emplace_back(), IdxImageStream::Open(path));
  }
  return Of(std::move(files));
}

absl::StatusOr<std::unique_ptr<ImageFiles>> ImageFiles::Of(
    std::vector<std::unique_ptr<IdxImageStream>> files) {
  auto all = std::unique_ptr<ImageFiles>(new ImageFiles(std::move(files)));
  RETURN_IF_ERROR(all->Check());
  return all;
}

ImageFiles::ImageFiles(std::vector<std::unique_ptr<IdxImageStream>> files)
    : files_(std::move(files)), starts_({0}) {
  for (const auto& file : files_) {
    starts_.push_back(starts_.back() + file->count());
    random_access_ = random_access_ && file->random_access();
  }
}

absl::Status ImageFiles::Check() const {
  for (const auto& file : files_) {
    if (file->height() != height() || file->width() != width()) {
      return absl::InvalidArgumentError(absl::StrCat(
          file->name(), ": the images are ", file->height(), "x", file->width(),
          ", expected ", height(), "x", width(), " as in ", files_[0]->name()));
    }
    RETURN_IF_ERROR(file->CheckSize());
  }
  return absl::OkStatus();
}

std::string ImageFiles::name() const {
  const size_t others = files_.size() - 1;
  return others == 0
             ? files_[0]->name()
             : absl::StrCat(files_[0]->name(), " and ", others, " more");
}

absl::Status ImageFiles::Read(int64_t first, int64_t images, uint8_t* pixels) {
  const int64_t image_bytes = int64_t{height()} * width();
  const int64_t end = first + images;
  // What is skipped is read, too, to where the images will be.
  while (!random_access_ && next_ < first) {
    RETURN_IF_ERROR(Read(next_, std::min(images, first - next_), pixels));
  }
  while (first < end) {
    const size_t i = std::upper_bound(starts_.begin(), starts_.end(), first) -
                     starts_.begin() - 1;
    const int64_t part = std::min(end, starts_[i + 1]) - first;
    RETURN_IF_ERROR(random_access_
                        ? files_[i]->ReadAt(first - starts_[i], part, pixels)
                        : ReadForward(*files_[i], first, part, pixels));
    first += part;
    pixels += part * image_bytes;
  }
  return absl::OkStatus();
}

absl::Status ImageFiles::ReadForward(IdxImageStream& file, int64_t first,
                                     int64_t images, uint8_t* pixels) {
  if (first < next_) {
    return absl::InternalError(absl::StrCat(file.name(), ": image ", first,
                                            " was read before image ", next_,
                                            ", and the file is read forward"));
  }
  ASSIGN_OR_RETURN(const int64_t read, file.Read(images, pixels));
  next_ += read;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ImageFiles::Digest() const {
  std::string digests;
  for (const auto& file : files_) {
    ASSIGN_OR_RETURN(const std::string digest, file->Digest());
    absl::StrAppend(&digests, digest, "\n");
  }
  return Sha256(digests);
}

absl::StatusOr<std::vector<std::string>> MatchingFiles(
    const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos) {
    return std::vector<std::string>{pattern};
  }
  glob_t found = {};
  const int result = glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv,
                                 found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (result == 0) return files;
  return absl::NotFoundError(absl::StrCat(
      "no file matches ", pattern,
      result == GLOB_NOMATCH ? "" : ": its folder cannot be read"));
}

}  // namespace convlab
