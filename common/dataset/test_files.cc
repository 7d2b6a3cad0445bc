#include "common/dataset/test_files.h"

#include <zlib.h>

namespace convlab {

std::string IdxFile(const std::vector<uint32_t>& header,
                    absl::string_view bytes, ByteOrder order) {
  std::string file;
  for (const uint32_t value : header) {
    for (int i = 0; i < 4; ++i) {
      const int shift = order == ByteOrder::kBig ? 24 - 8 * i : 8 * i;
      file.push_back(static_cast<char>(value >> shift & 0xff));
    }
  }
  file.append(bytes.data(), bytes.size());
  return file;
}

std::string Gzip(absl::string_view content) {
  z_stream stream = {};
  // The smallest window is the fastest; fuzzing compresses very often.
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + 9, 1,
               Z_DEFAULT_STRATEGY);
  std::string file(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(file.data());
  stream.avail_out = static_cast<uInt>(file.size());
  deflate(&stream, Z_FINISH);
  file.resize(stream.total_out);
  deflateEnd(&stream);
  return file;
}

}  // namespace convlab
