#include "kernels/compiled/cuda/connected_chain_plan.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cuda {
namespace {

// Bytes of weights that a chunk's products read: as if there were outputs for
// whole warpgroups. What lies behind a chunk's weights is multiplied, too, but
// nobody uses these sums.
int ReadChunkBytes(int tiles, int parts) {
  constexpr int kGroupTiles = kStreamOutputs / kMatrixTile;
  const int missing = RoundUp(tiles, kGroupTiles) - tiles;
  return (kChunkSteps * tiles + missing) * ChainStream::TileBytes(parts);
}

// What a block takes beside the launch's shared memory: barriers, and 1 KB of
// the system's, which is not part of shared_per_block.
constexpr int kOwnBytes = 512, kSystemBytes = 1024;

}  // namespace

bool MakeChainStream(const MatrixShape* shapes, int count, int parts,
                     int64_t images, const DeviceLimits& limits,
                     ChainStream* stream) {
  *stream = {};
  stream->groups = 1;
  stream->parts = parts;
  for (int i = 0; i < count; ++i) {
    if (shapes[i].outputs > kStreamOutputs) stream->groups = 2;
    stream->weight_bytes =
        std::max(stream->weight_bytes,
                 ReadChunkBytes(static_cast<int>(shapes[i].tiles), parts));
  }
  // A block takes hardly longer for a few images more, but another round of
  // blocks as long as the first.
  int64_t least = INT64_MAX;
  for (const int rows : kStreamRows) {
    const int64_t rounds =
        CeilDivide(CeilDivide(images, rows), limits.multiprocessors);
    if (rounds >= least) continue;
    least = rounds;
    stream->rows = rows;
  }
  const int room = std::min(limits.shared_per_block,
                            limits.shared_per_multiprocessor - kSystemBytes) -
                   kOwnBytes - ChainStream::StagesAt(stream->rows);
  stream->stages = std::min(room / stream->stage_bytes(), kStreamMostStages);
  return stream->stages > 1;
}

}  // namespace convlab::cuda
