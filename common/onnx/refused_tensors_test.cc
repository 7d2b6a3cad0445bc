// ONNX shapes, tensors, constants and versions that are refused.
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/onnx/refusals.h"
#include "common/onnx/test_models.h"

namespace convlab {
namespace {

using M = OnnxModel;

void SetDimension(M& model, int index, int64_t size) {
  model.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(index)
      ->set_dim_value(size);
}

const Refusal kRefusals[] = {
    // Shapes.
    {"Oblong",
     [](M& m) { SetDimension(m, 2, 7); },
     {"input 'x' has shape ['batch',1,7,6], expected [N,1,H,H]"}},
    {"Colour",
     [](M& m) { SetDimension(m, 1, 3); },
     {"['batch',3,6,6], expected [N,1,H,H]"}},
    {"Dynamic",
     [](M& m) {
       m.graph()
           .mutable_input(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->mutable_shape()
           ->mutable_dim(2)
           ->set_dim_param("height");
     },
     {"['batch',1,'height',6]"}},
    {"NegativeSize", [](M& m) { SetDimension(m, 2, -6); }, {"-6"}},
    {"Overflow",
     [](M& m) {
       SetDimension(m, 2, int64_t{1} << 33);
       SetDimension(m, 3, int64_t{1} << 33);
     },
     {"8589934592", "at most 46340"}},
    {"HalfInput",
     [](M& m) {
       m.graph()
           .mutable_input(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->set_elem_type(onnx::TensorProto::FLOAT16);
     },
     {"input 'x' has elements of type 10, expected FLOAT (1)"}},
    {"FiltersTooLarge",
     [](M& m) {
       SetDimension(m, 2, 2);
       SetDimension(m, 3, 2);
     },
     {"node_conv",
      "filters 'w' have shape [2,1,3,3], expected [M,1,K,K] with "
      "K of at most 2"}},
    {"Matrix",
     [](M& m) { SetAttribute(m.Node("fc"), "transB", int64_t{1}); },
     {"node_fc", "matrix 'm' has shape [8,3], expected [outputs,8]"}},
    {"Bias",
     [](M& m) { m.Node("fc").set_input(2, "b"); },
     {"node_fc", "bias 'b' has shape [2], expected [3]"}},
    {"Reshape",
     [](M& m) {
       m.Node("flat").set_input(1, "s");
       m.Integers("s", {-1, 4});
     },
     {"node_flat", "shape [N,2,2,2], and it makes [-1,4], expected [N,8]"}},
    {"ReshapeToNothing",
     [](M& m) {
       m.Node("flat").set_input(1, "s");
       m.Integers("s", {});
     },
     {"node_flat", "it makes []"}},
    {"ReshapeOfTheBatch",
     [](M& m) {
       m.Node("flat").set_input(1, "s");
       m.Integers("s", {2, -1});
     },
     {"node_flat", "it makes [2,-1]"}},
    {"ReshapeOverflow",
     [](M& m) {
       m.Node("flat").set_input(1, "s");
       m.Integers("s", {0, INT64_MAX, INT64_MAX, -1});
     },
     {"node_flat", "expected [N,8]"}},
    {"Classes",
     [](M& m) {
       m.Floats("wide", {8, 300}, std::vector<float>(2400, 1));
       m.Node("fc").set_input(1, "wide");
       m.Node("fc").mutable_input()->RemoveLast();
     },
     {"300", "expected at most 256 values"}},
    // Tensors.
    {"Half",
     [](M& m) {
       m.graph().mutable_initializer(0)->set_data_type(
           onnx::TensorProto::FLOAT16);
     },
     {"node_conv", "initializer 'w'", "FLOAT16 (10), expected FLOAT (1)"}},
    {"UnknownType",
     [](M& m) { m.graph().mutable_initializer(0)->set_data_type(99); },
     {"initializer 'w'", "unknown (99)"}},
    {"External",
     [](M& m) {
       onnx::TensorProto& tensor = *m.graph().mutable_initializer(0);
       tensor.set_data_location(onnx::TensorProto::EXTERNAL);
       auto& entry = *tensor.add_external_data();
       entry.set_key("location");
       entry.set_value("weights.bin");
     },
     {"initializer 'w'", "in another file 'weights.bin'"}},
    {"Segment",
     [](M& m) {
       m.graph().mutable_initializer(0)->mutable_segment()->set_begin(3);
     },
     {"initializer 'w'", "segment"}},
    {"TooFewValues",
     [](M& m) { m.graph().mutable_initializer(0)->set_dims(0, 3); },
     {"initializer 'w'", "shape [3,1,3,3] is 27 values", "72 raw bytes"}},
    {"ShapeOverflow",
     [](M& m) {
       m.graph().mutable_initializer(0)->set_dims(0, int64_t{1} << 62);
     },
     {"initializer 'w'", "impossible shape"}},
    {"NotFinite",
     [](M& m) {
       m.graph().mutable_initializer(1)->clear_raw_data();
       m.graph().mutable_initializer(1)->add_float_data(1);
       m.graph().mutable_initializer(1)->add_float_data(
           std::numeric_limits<float>::quiet_NaN());
     },
     {"node_conv", "'b' is nan at index 1, expected a finite number"}},
    {"IntegersForWeights",
     [](M& m) { m.Node("conv").set_input(1, "shape"); },
     {"node_conv", "'shape' has integers, expected float32"}},
    {"Rank",
     [](M& m) { m.Node("conv").set_input(1, "b"); },
     {"node_conv", "'b' has shape [2], expected 4 dimensions"}},
    // Constants.
    {"ConstantOperator",
     [](M& m) { m.Add("Sqrt", {"w"}, "y"); },
     {"node_y", "operator 'Sqrt' is not computed for constants"}},
    {"EmptyConstant",
     [](M& m) { m.Add("Constant", {}, "y"); },
     {"node_y", "no value"}},
    {"GatherOutside",
     [](M& m) {
       m.Integers("index", {4});
       m.Add("Gather", {"shape", "index"}, "y");
     },
     {"node_y", "an index is outside of 2 values"}},
    {"Growth",
     [](M& m) {
       std::string last = "shape";
       for (int i = 0; i < 100; ++i) {
         const std::string next = absl::StrCat("twice", i);
         m.Add("Concat", {last, last}, next);
         last = next;
       }
     },
     {"used again and again"}},
    // Versions.
    {"Opset",
     [](M& m) { m.model().mutable_opset_import(0)->set_version(99); },
     {"of version 99, expected 7 to 23"}},
    {"OldOpset",
     [](M& m) { m.model().mutable_opset_import(0)->set_version(6); },
     {"of version 6, expected 7"}},
    {"NoOpset",
     [](M& m) { m.model().mutable_opset_import(0)->set_domain("ai.onnx.ml"); },
     {"does not say the operators' version"}},
};

INSTANTIATE_TEST_SUITE_P(Tensors, OnnxRefusals, ::testing::ValuesIn(kRefusals),
                         NameOf);

}  // namespace
}  // namespace convlab
