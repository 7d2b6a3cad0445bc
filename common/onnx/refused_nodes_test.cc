// ONNX nodes and graphs that are refused.
#include "common/onnx/refusals.h"
#include "common/onnx/test_models.h"

namespace convlab {
namespace {

using M = OnnxModel;

const Refusal kRefusals[] = {
    // Attributes.
    {"Padding",
     [](M& m) {
       SetAttribute(m.Node("conv"), "pads", {2, 2, 2, 2});
     },
     {"node 'node_conv' ('Conv'): attribute pads is [2,2,2,2], expected "
      "[0,0,0,0]"}},
    {"Same",
     [](M& m) { SetAttribute(m.Node("conv"), "auto_pad", "SAME_UPPER"); },
     {"node_conv", "auto_pad is 'SAME_UPPER', expected NOTSET or VALID"}},
    {"Stride",
     [](M& m) {
       SetAttribute(m.Node("conv"), "strides", {2, 2});
     },
     {"node_conv", "strides is [2,2], expected [1,1]"}},
    {"Dilation",
     [](M& m) {
       SetAttribute(m.Node("conv"), "dilations", {2, 2});
     },
     {"node_conv", "dilations is [2,2], expected [1,1]"}},
    {"Group",
     [](M& m) { SetAttribute(m.Node("conv"), "group", int64_t{2}); },
     {"node_conv", "group is 2, expected 1"}},
    {"KernelShape",
     [](M& m) {
       SetAttribute(m.Node("conv"), "kernel_shape", {5, 5});
     },
     {"node_conv", "kernel_shape is [5,5], expected [3,3]"}},
    {"TypeOfAttribute",
     [](M& m) { SetAttribute(m.Node("conv"), "group", 1.0f); },
     {"node_conv", "attribute group is of type 1, expected 2, an integer"}},
    {"UnknownAttribute",
     [](M& m) { SetAttribute(m.Node("relu"), "slope", 0.1f); },
     {"node_relu", "attribute 'slope' is not one"}},
    {"PoolStride",
     [](M& m) {
       SetAttribute(m.Node("pool"), "strides", {1, 1});
     },
     {"node_pool", "strides is [1,1], expected [2,2], as kernel_shape"}},
    {"PoolPadding",
     [](M& m) {
       SetAttribute(m.Node("pool"), "pads", {0, 0, 1, 1});
     },
     {"node_pool", "pads is [0,0,1,1]"}},
    {"PoolWindow",
     [](M& m) {
       SetAttribute(m.Node("pool"), "kernel_shape", {2, 3});
     },
     {"node_pool", "kernel_shape is [2,3], expected [K,K] with K of 1 to 4"}},
    {"PoolTooLarge",
     [](M& m) {
       SetAttribute(m.Node("pool"), "kernel_shape", {5, 5});
     },
     {"node_pool", "kernel_shape is [5,5], expected [K,K] with K of 1 to 4"}},
    {"Alpha",
     [](M& m) { SetAttribute(m.Node("fc"), "alpha", 0.5f); },
     {"node_fc", "alpha is 0.5, expected 1"}},
    {"TransposedInput",
     [](M& m) { SetAttribute(m.Node("fc"), "transA", int64_t{1}); },
     {"node_fc", "transA is 1, expected 0"}},
    {"FlattenAxis",
     [](M& m) {
       onnx::NodeProto& node = m.Node("flat");
       node.set_op_type("Flatten");
       node.mutable_input()->RemoveLast();
       SetAttribute(node, "axis", int64_t{2});
     },
     {"node_flat", "axis is 2, expected 1"}},
    {"SoftmaxAxis",
     [](M& m) {
       SetAttribute(m.Add("Softmax", {"fc"}, "y"), "axis", int64_t{0});
     },
     {"node_y", "axis is 0, expected 1"}},
    {"Training",
     [](M& m) {
       m.Add("Dropout", {"fc", "", "training"}, "y");
       m.Integers("training", {1});
     },
     {"node_y", "training_mode is true, expected false"}},
    {"Perm",
     [](M& m) {
       onnx::NodeProto& node = m.Node("relu");
       node.set_op_type("Transpose");
       SetAttribute(node, "perm", {0, 1, 3, 2});
     },
     {"node_relu", "[N,2,4,4]", "perm is [0,1,3,2]", "[0,2,3,1]"}},
    // The graph.
    {"Operator",
     [](M& m) { m.Node("relu").set_op_type("Sigmoid"); },
     {"node 'node_relu' ('Sigmoid'): this operator is not run", "Conv, ",
      "Tanh"}},
    {"WithoutName",
     [](M& m) {
       m.Node("relu").set_op_type("Sigmoid");
       m.Node("relu").clear_name();
     },
     {"node ('Sigmoid', which writes 'relu'): "}},
    {"Domain",
     [](M& m) { m.Node("relu").set_domain("com.microsoft"); },
     {"node_relu", "domain is 'com.microsoft'"}},
    {"Branch",
     [](M& m) { m.Add("Relu", {"conv"}, "side"); },
     {"node_side", "reads 'conv', expected only 'fc'", "without branches"}},
    {"Residual",
     [](M& m) {
       m.Node("relu").set_op_type("Add");
       m.Node("relu").add_input("conv");
     },
     {"node_relu", "reads 'conv' too"}},
    {"UnknownInput",
     [](M& m) { m.Node("relu").set_input(0, "nowhere"); },
     {"node_relu", "reads 'nowhere', which nothing before it writes"}},
    {"WrittenTwice",
     [](M& m) { m.Node("relu").set_output(0, "conv"); },
     {"writes 'conv', which is there already"}},
    {"WritesNothing",
     [](M& m) { m.Node("relu").clear_output(); },
     {"node_relu", "writes nothing"}},
    {"Inputs",
     [](M& m) { *m.graph().add_input() = m.graph().input(0); },
     {"the graph has 2 inputs, 'x', 'x', expected one"}},
    {"NoInput",
     [](M& m) { m.graph().clear_input(); },
     {"the graph has 0 inputs, expected one"}},
    {"Outputs",
     [](M& m) {
       m.graph().add_output()->set_name("conv");
       m.graph().add_output()->set_name("fc");
     },
     {"the graph has 2 outputs, expected one"}},
    {"OtherOutput",
     [](M& m) { m.graph().add_output()->set_name("relu"); },
     {"output is 'relu', expected 'fc'"}},
    {"NoLayers",
     [](M& m) {
       m.graph().clear_node();
       m.graph().add_output()->set_name("x");
     },
     {"no layer"}},
    {"BehindSoftmax",
     [](M& m) {
       m.Add("Softmax", {"fc"}, "softmax");
       m.Add("Relu", {"softmax"}, "y");
     },
     {"node_y", "it follows node 'node_softmax'"}},
    {"MatrixFirst",
     [](M& m) {
       m.Node("fc").set_op_type("MatMul");
       m.Node("fc").mutable_input()->RemoveLast();
       m.Node("fc").mutable_input()->SwapElements(0, 1);
     },
     {"node_fc", "reads 'm' first, expected 'flat'"}},
    {"TooFewInputs",
     [](M& m) {
       while (m.Node("conv").input_size() > 1) {
         m.Node("conv").mutable_input()->RemoveLast();
       }
     },
     {"node_conv", "it has 1 inputs, expected 2 to 3"}},
    {"AddOfNoBias",
     [](M& m) {
       m.Node("relu").set_op_type("Add");
       m.Node("relu").add_input("b");
     },
     {"node_relu", "expected a bias, behind a Conv, MatMul or Gemm"}},
    {"WithoutFlatten",
     [](M& m) {
       m.Node("fc").set_input(0, "pool");
       m.graph().mutable_node()->SwapElements(3, 4);
       m.graph().mutable_node()->RemoveLast();
     },
     {"node_fc", "input has shape [N,2,2,2], expected two dimensions"}},
    {"ConvBehindFlatten",
     [](M& m) {
       m.Add("Conv", {"fc", "w"}, "y");
     },
     {"node_y", "input has shape [N,3], expected [N,C,H,H]"}},
    {"SparseInitializer",
     [](M& m) { m.graph().add_sparse_initializer(); },
     {"sparse"}},
};

INSTANTIATE_TEST_SUITE_P(Nodes, OnnxRefusals, ::testing::ValuesIn(kRefusals),
                         NameOf);

}  // namespace
}  // namespace convlab
