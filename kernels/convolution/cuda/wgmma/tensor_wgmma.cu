// Hopper's products of warpgroups at float32's accuracy.
//
// Idea. As in tensor_split, x * k is hx * hk + hx * lk + lx * hk in half
// precision, of operands scaled by powers of two, and pixels lie in shared
// memory with their channels innermost, so that a filter row's values are one
// run and a tap is an offset. Of wgmma's two operands, the one with 64 rows may
// come from registers: 64 pixels by 16 values of the run. The other, filters in
// shared memory, is read by the tensor cores themselves.
//
// Change against tensor_split. mma.sync reaches 630 TFLOP/s on an H200, wgmma
// 900 and more. And a warpgroup has the sums of several output rows at once
// (shape.rows), so that it loads an input row once and multiplies it with every
// filter row that an output row of its own wants. A unit is a column of so many
// output rows, or two columns (shape.shifts), for which every filter is there
// twice, once moved by a pixel; the units of all blocks of rows are numbered
// through, and 64 of them make a tile, whatever the width.
//
// Who does what. One block per multiprocessor. Some warps convert, together or
// in two or three groups: they bring a slab (an image, or some blocks of its
// rows or tiles), scale it by its own largest value, split it, and leave the
// halves in one of a few buffers. Two or three warpgroups multiply, tile by
// tile in turn or a slab each, and leave the outputs in a stage. One warp
// stores the stage: where it holds a whole image, as one run. Where filters
// leave no room for a stage, outputs go to device memory from registers.
// Barriers in shared memory say what is full and what is free, and every thread
// arrives for itself (one lane for its warp is no faster, and racecheck cannot
// follow it); nobody waits for all. The warps that convert give registers to
// those that multiply.
//
// Cost. Second layers, batch 10,000, three products: fa18 617 GFLOP, fa19 363,
// fa20 218, sp19 47; what pads them: a filter row's run to a multiple of 16
// (84 to 96, 60 to 64, 28 to 32, 30 to 32), units to multiples of 64, rows.
// Bytes: inputs and outputs once.
//
// Bound. Tensor cores for fa18, fa19 and fa20: 0.69, 0.40 and 0.24 ms at 900
// TFLOP/s without padding. sp19: device memory, 0.08 ms.
//
// Measured on one H200, batch 10,000, in ms: fa18 1.04, fa19 0.79, fa20 0.41,
// sp19 0.147, where tensor_split takes 2.45, 1.50, 0.91 and 0.26; before the
// points from the trace on, 1.66, 0.90, 0.60 and 0.20.
//
// Accuracy. Tensor cores cut bits off where they add, and these sums stay in
// them for as many products as plan.pass_steps allows, 42 at most. Errors are
// 8.2e-7 for fa18, 4.3e-7 for fa19, whose small products have sums of their own
// and lose nothing, and 8.4e-7 and 6.2e-7 for fa20 and sp19, which have one sum
// for all three. Those are of values of both signs. Where all values are
// positive, all that is cut off has one direction: 3.4e-6 for fa18, 1.5e-6 for
// fa19, 1.4e-6 for fa20, 9.7e-7 for sp19.
//
// Counters (ncu, fa19's second layer, 0.76 ms at 1796 MHz): tensor pipe 60 %
// busy, DRAM 38 %, shared memory and the rest of the multiprocessor 60 %; the
// longest stall is of warps that convert, for device memory. ArrangeKernel
// takes 9 us, which only a few images notice.
//
// What was learnt on the way.
// - Rows from registers take 13 cycles to come, whatever the filters' number:
//   measured 283 TFLOP/s with 8 columns, 554 with 16, 860 with 24, 915 with 32,
//   925 with 48, which are 13, 13, 13, 16 and 24 cycles at the 1.7 GHz that
//   such a load leaves. So a product has 24 columns or more: two output rows of
//   16 filters each, for which filters lie with rows of zeros around them, or
//   two columns. One warpgroup alone keeps that pace, and products of the same
//   sum, one after the other, do, too.
// - Rows from shared memory, by descriptors, would take longer: 2048 bytes of
//   rows and 768 of filters are 22 cycles of a shared memory of 128 bytes a
//   cycle. And pixels would have to lie 16 bytes apart, eight channels to a
//   plane of their own.
// - Sums of different shapes that overlap in registers (all output rows that an
//   input row meets, in one product) make the compiler wait for each product.
//   Products of one shape do not.
// - A load to a register that a product reads makes the next product wait for
//   it, even if that product reads another: 660 instead of 830 TFLOP/s. Hence
//   the registers in between.
// - Predicted: one product of 48 columns for hx * (hk, lk) saves a third of the
//   rows' way. Measured: no gain, and its sums need half as many registers
//   more.
// - Stores whose source and target are congruent modulo 128 bytes: 3.8 TB/s
//   instead of 3.3.
// - Bringing whole images ahead by the copy engine, where two more fit (fa20,
//   sp19): 0.61 to 0.59 and 0.26 to 0.20. Bringing slabs ahead by cp.async: no
//   gain. fa18 with three buffers for slabs of one tile each: 1.71 to 1.64.
// - Three warpgroups instead of two for fa20: 0.79 to 0.68; for sp19: slower,
//   since fewer warps convert.
// - A trace of one block's clocks told what each warp waits for. sp19's
//   warpgroups waited for converted slabs, of which one took 4000 cycles,
//   mostly latencies: two groups of three warps, a slab each, took 0.194
//   instead of 0.240. Then for themselves: a slab has one tile, and 2200 of
//   10,000 cycles went into slabs in which a warpgroup had none. With slabs of
//   its own: 0.182 to 0.173, and fa18, of whose slabs the same is true, 1.63
//   to 1.55.
// - Who leaves out slabs needs barriers of its own: a barrier's parity tells a
//   phase only from the next, and with one barrier for each buffer a warpgroup
//   that was a slab ahead took a phase that had not begun for one that was
//   over. Tests with a few slabs for each multiprocessor passed, a benchmark of
//   10,000 images did not end. The times of these six points, and the later
//   ones above, were taken before that was mended. Hence WgmmaRing, and its
//   test, which runs the protocol in any order.
// - Registers that spill cost more than they look: with 128 bytes of them sp19
//   took 0.24 instead of 0.19, fa20 0.60 instead of 0.58.
// - One arrival per warp or warpgroup at the barriers, instead of every
//   thread's: 1 to 2 % slower.
// - Starting while ArrangeKernel runs: 4 to 6 us less.
// - 16 loads of eight channels of two pixels, where slabs are small, instead of
//   one channel pair's: 10 to 14 % faster for 8 to 32 channels.
// - To leave out a store by a condition was a branch, at whose end lanes wait
//   for each other: 43 cycles for a value of each thread's, and 19 with the
//   condition in the instruction. fa19 0.86 to 0.81.
// - Two columns of a unit cost nothing where a filter row's run leaves a pixel
//   unused: fa18's 84 halves of 96 and fa20's 28 of 32. fa20 needs no rows of
//   zeros for it: predicted 0.42 of 0.55, measured 0.475 with five rows and two
//   warpgroups, 0.505 with two and three. fa18's product has 48 columns, and
//   its tiles, 126 units of an image, are full: predicted 0.94 of 1.49,
//   measured 1.12, and 1.08 by what the next points say.
// - fa18's filters then take 129 KB and leave no room for a stage. Outputs from
//   registers are no good where there is room: fa19 0.98 instead of 0.86. With
//   the condition in the instruction, and in two lanes that lie side by side
//   two columns that do, they take 6500 instead of 14,800 cycles of an image's.
//   A slab is free before they are stored: 1.16 to 1.08. Slabs are of 64 units,
//   not of whole blocks, so that three of them fit; with one group of warps
//   that convert instead of two, 1.13.
// - Loading a row two products ahead, instead of one: 2 % for fa18, 1 % for
//   fa20. A product's three parts in another order, two groups of products on
//   their way: no gain, or registers do not suffice. With a fourth buffer for
//   its slabs sp19 was 1 to 3 % faster in a harness, and 1 % slower in the
//   benchmark, 0.171 to 0.173.
// - Disassembled, a warp that converts took 17 instructions a value, nine of
//   them to load it: from a pointer that might be of either memory, at an
//   address of 64 bits that was worked out anew, into registers that waited for
//   the loads before. A function for each memory, an address for each channel
//   and all else in the instruction, and copies of the last channel where there
//   is none (its filters are zeros), instead of conditions: eight. fa19 0.83 to
//   0.81, sp19 and fa20 with three warpgroups 3 and 5 %, and wgmma_fp16, whose
//   products no longer hide it, 0.66 to 0.52 for fa18.
// - A load under a condition without a value for the other case keeps its
//   register from the kernel's beginning on: 300 bytes of spills.
// - Three integer divisions began each slab: 700 cycles of every role that had
//   one, since each step waits for the one before. By multiplication: fa19 0.81
//   to 0.79, sp19 0.154 to 0.148, fa20 0.425 to 0.415. fa18 takes 2 % fewer
//   cycles, and as long: the clock falls by as much.
// - Sums that begin with the first product, rather than with 120 registers set
//   to zero: 1 to 2 %. What is stored without a condition on the filter, where
//   all of a group exist: three instructions a value instead of five.
// - A third warpgroup, where the small products' sums give their registers for
//   it: predicted 0.135 to 0.15 for sp19, measured 0.167 of 0.172, and 0.159
//   with a third group that converts; fa20 0.47 to 0.45. Who has no tile of an
//   image waited until the stage was stored that it would not fill: fa20 0.415
//   to 0.408.
// - The small products of all steps before the large ones cost no accuracy,
//   even in one sum: 2.3e-7 for sp19. But rows are loaded twice, and groups of
//   products are shorter: 0.175 for sp19. fa19 with three warpgroups that way:
//   predicted 0.61 to 0.68, measured 0.86.
// - Rows three products ahead, where there are registers for it: 1 % for fa19.
// - Full rounds of the converting warps without conditions: 1 % for fa20 and
//   fa19, and sp19 10 % slower. A pointer for each row of what goes to device
//   memory, which halves the additions: fa18 no faster.
// - Two input rows for a group of products where few output rows want them: no
//   gain. Four warpgroups: registers do not suffice.
// What is left. By clocks that warps read, products at their pace would take 86
// % of fa18's cycles, 78 % of fa20's, 67 % of fa19's and 58 % of sp19's, of
// which there are 1.55 GHz for fa18, 1.6 for fa20 and sp19 and 1.7 for fa19:
// the card runs at 1.98 without such a load. Without parts of the work, by
// experiment and before the last points: fa19 0.79 of 0.835 ms without loading
// rows, 0.73 without converting, 0.79 without storing, 0.63 without the three;
// fa18 0.94, 1.00, 0.99 and 0.90 of 1.055; sp19 0.153, 0.140, 0.150 and 0.126
// of 0.162. Shared memory is the other bound: a product of 24 columns reads 6
// wavefronts of filters in its 13 cycles, and by count, with rows, halves and
// stages an image of fa19 takes 11,000 of 18,000 cycles there.
#include "kernels/convolution/cuda/wgmma/wgmma_convolution.cuh"

namespace convlab::cuda {

extern const KernelVariant kTensorWgmma;
const KernelVariant kTensorWgmma = {
    "tensor_wgmma",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Hopper's products of warpgroups at float32's accuracy: operands split "
    "into two halves as before, pixels from registers, filters from shared "
    "memory; warps that convert, that multiply and that store work side by "
    "side.",
    "mma.sync reaches two thirds of Hopper's tensor cores, wgmma all of them; "
    "and an input row is loaded once for all output rows that it meets.",
    WgmmaConvolution<2>::Reject,
    Make<WgmmaConvolution<2>>,
    [](const Problem& problem, const DeviceLimits& limits) {
      return EstimateWgmmaNs(problem, /*parts=*/2, limits);
    },
};

}  // namespace convlab::cuda
