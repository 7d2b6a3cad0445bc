// convlab.h for C++17: plans as objects, errors as exceptions.
//
//   convlab_problem problem = CONVLAB_PROBLEM_INIT;
//   problem.channels = 3, ...;
//   convlab::Plan plan(problem, {/*device=*/0});
//   ... cudaMalloc(&workspace, plan.info().workspace_bytes) ...
//   plan.Run(x, weights, bias, y, workspace, stream);
//
// With weights that stay:
//
//   ... cudaMalloc(&prepared, plan.info().prepared_bytes) ...
//   plan.PrepareWeights(weights, prepared, stream);
//   plan.RunPrepared(x, prepared, bias, y, workspace, stream);
//
// What the fields and the arguments mean stands in convlab.h.
#ifndef CONVLAB_CONVLAB_HPP_
#define CONVLAB_CONVLAB_HPP_

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "convlab.h"

namespace convlab {
// Inline, so that programs may hold parts that were compiled with other
// versions of this header.
inline namespace cpp2 {

class Error : public std::runtime_error {
 public:
  Error(convlab_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  convlab_status status() const { return status_; }  // CONVLAB_...

 private:
  convlab_status status_;
};

// Throws an Error with the thread's last message unless all went well.
inline void Check(convlab_status status) {
  if (status != CONVLAB_OK) throw Error(status, convlab_last_error());
}

struct Options {
  int device = CONVLAB_CPU;
  int threads = 0;
  int accuracy = CONVLAB_FP32;
  int flags = 0;
  const char* kernel = nullptr;
};

// A plan for one problem; movable.
class Plan {
 public:
  explicit Plan(const convlab_problem& problem, const Options& options = {}) {
    convlab_options c_options = CONVLAB_OPTIONS_INIT;
    c_options.device = options.device;
    c_options.threads = options.threads;
    c_options.accuracy = options.accuracy;
    c_options.flags = options.flags;
    c_options.kernel = options.kernel;
    convlab_plan* plan = nullptr;
    Check(convlab_plan_create(&problem, &c_options, &plan));
    plan_.reset(plan);
    Check(convlab_plan_query(plan, &info_));
  }

  const convlab_info& info() const { return info_; }
  convlab_plan* get() const { return plan_.get(); }  // still the object's

  // `workspace` has info().workspace_bytes or more.
  void Run(const void* x, const void* weights, const void* bias, void* y,
           void* workspace = nullptr, void* stream = nullptr) const {
    Check(convlab_run(plan_.get(), x, weights, bias, y, workspace,
                      static_cast<std::size_t>(info_.workspace_bytes), stream));
  }

  // `prepared` has info().prepared_bytes or more.
  void PrepareWeights(const void* weights, void* prepared,
                      void* stream = nullptr) const {
    Check(convlab_prepare_weights(
        plan_.get(), weights, prepared,
        static_cast<std::size_t>(info_.prepared_bytes), stream));
  }
  void RunPrepared(const void* x, const void* prepared, const void* bias,
                   void* y, void* workspace = nullptr,
                   void* stream = nullptr) const {
    Check(convlab_run_prepared(plan_.get(), x, prepared, bias, y, workspace,
                               static_cast<std::size_t>(info_.workspace_bytes),
                               stream));
  }

 private:
  struct Destroy {
    void operator()(convlab_plan* plan) const { convlab_plan_destroy(plan); }
  };
  std::unique_ptr<convlab_plan, Destroy> plan_;
  convlab_info info_ = CONVLAB_INFO_INIT;
};

}  // namespace cpp2
}  // namespace convlab

#endif  // CONVLAB_CONVLAB_HPP_
