// Rings of buffers through which the roles of a block hand over slabs and
// stages. Free of CUDA, so that protocol_test runs the protocol on the host.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_RING_H_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_RING_H_

namespace convlab::cuda {

// A ring of buffers that are filled and read in turn. Each turn has a barrier
// that tells when the buffer is filled, and one that tells when it is free.
// There are `barriers` of either kind, a multiple of the buffers. A barrier
// tells only one phase from the next, so a thread must not wait for a phase
// before the one before it is over: a warpgroup that leaves out turns needs
// barriers of its own.
struct WgmmaRing {
  int buffers, barriers;
  // Those of the current turn, and the parity of the barrier's phase.
  int buffer = 0, barrier = 0, parity = 0;

  constexpr WgmmaRing(int of_buffers, int of_barriers)
      : buffers(of_buffers), barriers(of_barriers) {}
  constexpr void Advance(int turns = 1) {
    for (; turns > 0; --turns) {
      if (++buffer == buffers) buffer = 0;
      if (++barrier == barriers) barrier = 0, parity ^= 1;
    }
  }
  // The buffer is free when the phase of this parity of this barrier is over:
  // then its reader of the turn before is done. In the first round that is so
  // from the beginning.
  constexpr int free_barrier() const {
    return barrier - buffers + (barrier < buffers ? barriers : 0);
  }
  constexpr int free_parity() const {
    return barrier < buffers ? parity ^ 1 : parity;
  }
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_RING_H_
