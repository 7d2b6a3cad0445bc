// Folds neighbouring linear layers into one matrix.
#ifndef KERNELS_COMPILED_FOLD_H_
#define KERNELS_COMPILED_FOLD_H_

#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "kernels/compiled/plan.h"

namespace convlab {

// The weights [outputs, inputs] and the bias [outputs] of the one matrix that
// does what the linear layers of the stage do one after another. It is computed
// in float64 and each value is rounded once, so that the matrix is as accurate
// as the layers' own weights. The bias is empty if no layer has one.
// `weights` are those of the network, which CheckWeights accepts.
LayerWeights FoldLayers(const Network& network, const NetworkWeights& weights,
                        const Stage& stage, Workers& workers);

}  // namespace convlab

#endif  // KERNELS_COMPILED_FOLD_H_
