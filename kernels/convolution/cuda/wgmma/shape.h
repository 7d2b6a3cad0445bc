// The shapes that WgmmaKernel is compiled for. Free of CUDA.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_SHAPE_H_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_SHAPE_H_

namespace convlab::cuda {

struct WgmmaShape {
  int kernel_size;
  int rows;             // of outputs, of a unit
  int octets;           // of filters, of a group
  int vector_rows = 1;  // output rows of one product
  // Whether a pixel's halves fill words of 8 bytes, not only of 4.
  bool wide = false;
  int multipliers = 2;  // warpgroups
  int threads = 512;    // of a block
  // Groups of converters. Each converts a slab of its own, so that the waiting
  // times of several slabs overlap.
  int converter_groups = 1;
  // Each slab is one warpgroup's. Otherwise its tiles are dealt to all.
  bool own_slabs = false;
  // Columns of a unit, 1 or 2. For the second all filters are there once more,
  // moved by a pixel. This costs nothing where a filter row's run leaves a
  // pixel of its last step of 16 halves unused.
  int shifts = 1;
  // Outputs go from registers to device memory, where there is no room for a
  // stage. A slab may then begin and end within a band.
  bool direct = false;
  // The side of the windows of max pooling, which stand side by side, or 0. The
  // two units of a thread are then the halves of one window or of several, one
  // below the other, so that the largest sums are found in registers, and go to
  // device memory from there. A slab is an image, and a tile may begin in one
  // and end in another.
  int pool = 0;
  // Of an operand: 2, its high halves and its low ones, for three products; or
  // 1, its values rounded to halves, for one.
  int parts = 2;
  // Converters load the pixels of a slab that would leave most of them idle
  // with 16 channels at a time (WgmmaPixelsByUnit). Measured to pay for few of
  // the shapes.
  bool by_pixel = false;

  // This shape with another choice. Defined before its use, as constant
  // expressions of the table below need it.
  template <typename T>
  constexpr WgmmaShape With(T WgmmaShape::*choice, T value) const {
    WgmmaShape shape = *this;
    shape.*choice = value;
    return shape;
  }
  constexpr WgmmaShape VectorRows(int n) const {
    return With(&WgmmaShape::vector_rows, n);
  }
  constexpr WgmmaShape Wide() const { return With(&WgmmaShape::wide, true); }
  constexpr WgmmaShape Multipliers(int n) const {
    return With(&WgmmaShape::multipliers, n);
  }
  constexpr WgmmaShape Threads(int n) const {
    return With(&WgmmaShape::threads, n);
  }
  constexpr WgmmaShape ConverterGroups(int n) const {
    return With(&WgmmaShape::converter_groups, n);
  }
  constexpr WgmmaShape OwnSlabs() const {
    return With(&WgmmaShape::own_slabs, true);
  }
  constexpr WgmmaShape TwoColumns() const {
    return With(&WgmmaShape::shifts, 2);
  }
  constexpr WgmmaShape Direct() const {
    return With(&WgmmaShape::direct, true);
  }
  constexpr WgmmaShape Pools(int n) const {
    return Direct().With(&WgmmaShape::pool, n);
  }
  constexpr WgmmaShape OnePart() const { return With(&WgmmaShape::parts, 1); }
  constexpr WgmmaShape ByPixel() const {
    return With(&WgmmaShape::by_pixel, true);
  }

  constexpr int products() const { return 2 * parts - 1; }
  // Barriers of each kind for a ring of `buffers` buffers (WgmmaRing). With
  // slabs of their own a barrier always belongs to the same warpgroup.
  constexpr int barriers(int buffers) const {
    return own_slabs && buffers % multipliers != 0 ? buffers * multipliers
                                                   : buffers;
  }
  // The most that barriers() may return, and two for each group of converters.
  constexpr int most_barriers() const {
    if (own_slabs && multipliers > 2) return 12;
    return converter_groups > 3 || pool > 0 ? 8 : 6;
  }
  // Buffers for slabs. A warpgroup with slabs of its own has two at most. Those
  // of a tile that goes through several images are read at the same time.
  constexpr int most_buffers() const {
    return own_slabs ? 2 * multipliers : pool > 0 ? 8 : 4;
  }
  // Whether it works with so many buffers of slabs, and stages. Each group of
  // converters fills a buffer of its own. With slabs of their own warpgroups
  // read one each while another is filled, and one may read a slab that the
  // others are long past, so that a barrier belongs to one group of converters.
  constexpr bool Takes(int buffers, int stages) const {
    return buffers >= converter_groups && buffers <= most_buffers() &&
           (!own_slabs || (buffers > multipliers &&
                           barriers(buffers) % converter_groups == 0)) &&
           direct == (stages == 0) && barriers(buffers) <= most_barriers() &&
           barriers(stages) <= most_barriers();
  }
  // Channels of a pixel that are converted together.
  constexpr int values() const { return wide ? 4 : 2; }
  constexpr int converter_warps() const {
    return threads / 32 - 4 * multipliers - (direct ? 0 : 1);
  }
  // The registers of a thread, of multipliers and of the other warpgroups:
  // together what the block had when it began.
  constexpr int converter_registers() const { return 56; }
  constexpr int multiplier_registers() const {
    const int given = 65536 / threads / 8 * 8;
    const int others = threads / 128 - multipliers;
    return (given * threads / 128 - others * converter_registers()) /
           multipliers / 8 * 8;
  }

  // Vectors of output rows: those of one product each. The sums of a vector
  // that a thread holds.
  constexpr int vectors() const { return rows / vector_rows; }
  constexpr int sums() const { return vector_rows * shifts * octets * 4; }
  // The input rows that a unit's output rows need, and pairs of them.
  constexpr int input_rows() const { return rows + kernel_size - 1; }
  constexpr int pairs() const { return (input_rows() + 1) / 2; }
  // With two parts, the pairs of rows for which there are registers besides
  // those for the sums of one step and of all, for what is being loaded and for
  // addresses: a pair takes 8. And those of which high halves stay in registers
  // (StepOrder).
  constexpr int free_pairs() const {
    return (multiplier_registers() - 2 * vectors() * sums() - 24) / 8;
  }
  constexpr int held_pairs() const {
    return parts == 1 ? 0 : free_pairs() < pairs() ? free_pairs() : pairs();
  }
};

// For a row of the table below; the rest are the defaults above.
constexpr WgmmaShape Wgmma(int kernel_size, int rows, int octets) {
  WgmmaShape shape = {};
  shape.kernel_size = kernel_size, shape.rows = rows, shape.octets = octets;
  return shape;
}

// A product has 8 * octets * vector_rows * shifts columns, 24 to 48: with fewer
// its rows take longer to come from the registers than to be multiplied. More
// rows use an input row more often, and need registers for their sums, of which
// a thread has more in a smaller block. Three warpgroups hide each other's
// output better than two, but leave fewer registers and fewer warps to convert.
// One part needs registers for half as many sums and a third of the time for
// products, so that more warps convert. With slabs of their own warpgroups
// spend less time on each, which pays where a slab has one tile or two and a
// third buffer fits.
//
// The arguments of Wgmma are kernel_size, rows and octets.
constexpr WgmmaShape kWgmmaShapes[] = {
    // Two parts (tensor_wgmma).
    Wgmma(3, 6, 3).Wide(),
    Wgmma(3, 6, 3),
    Wgmma(3, 6, 2).VectorRows(2).Wide(),
    Wgmma(3, 6, 2).VectorRows(2),
    Wgmma(3, 6, 2).VectorRows(2).ConverterGroups(2).OwnSlabs(),
    Wgmma(5, 5, 3).Wide().ByPixel(),
    Wgmma(5, 5, 3),
    Wgmma(5, 5, 3).ConverterGroups(2).OwnSlabs(),
    Wgmma(5, 4, 2).VectorRows(2).Wide().Multipliers(3),
    Wgmma(5, 6, 2).VectorRows(2).Wide(),
    Wgmma(5, 6, 2).VectorRows(2),
    Wgmma(5, 6, 2).VectorRows(2).Threads(640).ConverterGroups(4).OwnSlabs(),
    Wgmma(7, 3, 3).Wide().TwoColumns().ConverterGroups(2).OwnSlabs().Direct(),
    Wgmma(7, 5, 2).Wide().TwoColumns().Threads(384),
    Wgmma(7, 5, 3).Wide(),
    Wgmma(7, 5, 3),
    Wgmma(7, 4, 2).VectorRows(2).Wide().Multipliers(3),
    Wgmma(7, 4, 2).VectorRows(2),
    Wgmma(9, 5, 3).Wide(),
    Wgmma(9, 5, 3),
    Wgmma(9, 4, 2).VectorRows(2).Wide().Multipliers(3),
    Wgmma(9, 4, 2).VectorRows(2),
    // One part (wgmma_fp16).
    Wgmma(3, 6, 2).VectorRows(2).Wide().Multipliers(3).Threads(640).OnePart(),
    Wgmma(3, 6, 2).VectorRows(2).Multipliers(3).Threads(640).OnePart(),
    Wgmma(5, 5, 3).Wide().Threads(768).ConverterGroups(2).OnePart(),
    Wgmma(5, 5, 3).Multipliers(3).Threads(640).OnePart(),
    Wgmma(5, 8, 2)
        .VectorRows(2)
        .Wide()
        .Threads(640)
        .ConverterGroups(2)
        .OwnSlabs()
        .OnePart(),
    Wgmma(5, 6, 2)
        .VectorRows(2)
        .Multipliers(3)
        .Threads(640)
        .ConverterGroups(2)
        .OwnSlabs()
        .OnePart(),
    Wgmma(7, 3, 3)
        .Wide()
        .TwoColumns()
        .Threads(768)
        .ConverterGroups(2)
        .OnePart(),
    Wgmma(7, 5, 2)
        .Wide()
        .TwoColumns()
        .Threads(640)
        .ConverterGroups(2)
        .OwnSlabs()
        .OnePart(),
    Wgmma(7, 4, 2)
        .TwoColumns()
        .Threads(640)
        .ConverterGroups(2)
        .OwnSlabs()
        .OnePart(),
    Wgmma(7, 5, 3).Wide().Multipliers(3).Threads(640).OnePart(),
    Wgmma(7, 5, 3).Multipliers(3).Threads(640).OnePart(),
    Wgmma(9, 4, 2).VectorRows(2).Wide().Multipliers(3).Threads(640).OnePart(),
    Wgmma(9, 4, 2).VectorRows(2).Multipliers(3).Threads(640).OnePart(),
    // Two parts, pooled.
    Wgmma(5, 4, 2)
        .VectorRows(2)
        .Multipliers(3)
        .Threads(640)
        .ConverterGroups(4)
        .Pools(2),
    Wgmma(7, 4, 2).Wide().TwoColumns().Threads(384).Pools(4),
};
constexpr int kWgmmaShapeCount = sizeof(kWgmmaShapes) / sizeof(WgmmaShape);

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_SHAPE_H_
