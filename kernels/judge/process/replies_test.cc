#include "kernels/judge/process/replies.h"

#include <climits>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/process/fault.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kForged[] = "wrote to the judge's socket";

Request RequestOf(Order order) {
  Request request = {};
  request.token = 42;
  request.order = order;
  return request;
}

Reply ReplyTo(const Request& request) {
  Reply reply = {};
  reply.token = request.token;
  reply.order = request.order;
  return reply;
}

TEST(CheckReply, OnlyWhoKnowsTheSecretAndTheOrderAnswers) {
  const Request request = RequestOf(Order::kOp);
  Reply reply = ReplyTo(request);
  EXPECT_TRUE(CheckReply(request, reply).ok());
  ++reply.token;
  EXPECT_EQ(CheckReply(request, reply),
            KernelFault(Fault::kBrokeRule, kForged));
  reply = ReplyTo(request);
  reply.order = Order::kReport;
  EXPECT_EQ(CheckReply(request, reply),
            KernelFault(Fault::kBrokeRule, kForged));
}

// Where the kernel's code runs, it cannot call its own failure the machine's.
TEST(CheckReply, AFailureIsTheKernelsWhereItsCodeRuns) {
  for (const Order order :
       {Order::kReady, Order::kLoad, Order::kMap, Order::kBegin, Order::kProlog,
        Order::kOp, Order::kEpilog, Order::kReport, Order::kSettle}) {
    const Request request = RequestOf(order);
    Reply reply = ReplyTo(request);
    reply.code = static_cast<int32_t>(absl::StatusCode::kResourceExhausted);
    std::strcpy(reply.text, "no\n memory\x1b");
    const absl::Status status = CheckReply(request, reply);
    const bool machine = order == Order::kReady || order == Order::kMap ||
                         order == Order::kBegin;
    EXPECT_EQ(status.code(), machine ? absl::StatusCode::kResourceExhausted
                                     : absl::StatusCode::kAborted);
    EXPECT_EQ(status.message(), "no memory");
  }
}

TEST(CheckReply, AProcessTellsThatARuleWasBroken) {
  const Request request = RequestOf(Order::kSettle);
  Reply reply = ReplyTo(request);
  reply.code = static_cast<int32_t>(absl::StatusCode::kAborted);
  EXPECT_EQ(FaultOf(CheckReply(request, reply)), Fault::kEnded);
  reply.broke_rule = 1;
  EXPECT_EQ(FaultOf(CheckReply(request, reply)), Fault::kBrokeRule);
}

TEST(CheckReply, ATextNeedsNoEnd) {
  const Request request = RequestOf(Order::kLoad);
  Reply reply = ReplyTo(request);
  reply.code = 1;
  std::memset(reply.text, 'a', sizeof(reply.text));
  EXPECT_THAT(std::string(CheckReply(request, reply).message()),
              SizeIs(sizeof(reply.text)));
}

OpTimes OneMillisecond(bool has_events) {
  OpTimes times;
  times.judge_ns = 1'000'000;
  times.has_events = has_events;
  return times;
}

TEST(AcceptTimes, TimesAreKeptAsTheyWereFound) {
  ClockCheck clock;
  CallResult result;
  Reply reply = {};
  reply.op_ns = 990'000;
  reply.event_ns = 1'020'000;  // 2 % more by the GPU's clock
  ASSERT_TRUE(AcceptTimes(reply, OneMillisecond(true), clock, result).ok());
  reply.event_ns = -1;
  ASSERT_TRUE(AcceptTimes(reply, OneMillisecond(false), clock, result).ok());
  EXPECT_THAT(result.op_ns, ElementsAre(990'000, 990'000));
  EXPECT_THAT(result.judge_ns, ElementsAre(1'000'000, 1'000'000));
  EXPECT_THAT(result.event_ns, ElementsAre(1'020'000));
}

TEST(AcceptTimes, WhatCannotBeIsRefused) {
  ClockCheck clock;
  CallResult result;
  Reply reply = {};
  for (const int64_t op_ns : {int64_t{-1}, int64_t{1'000'001}, INT64_MAX}) {
    reply.op_ns = op_ns;
    EXPECT_EQ(AcceptTimes(reply, OneMillisecond(true), clock, result).code(),
              absl::StatusCode::kAborted);
  }
  EXPECT_THAT(result.op_ns, IsEmpty());
  reply.op_ns = 990'000;
  for (const int64_t event_ns :
       {int64_t{-1}, int64_t{1'020'001}, INT64_MIN, INT64_MAX}) {
    reply.event_ns = event_ns;
    const absl::Status status =
        AcceptTimes(reply, OneMillisecond(true), clock, result);
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_EQ(FaultOf(status), Fault::kBrokeRule);
    EXPECT_THAT(std::string(status.message()), HasSubstr("device events"));
  }
  EXPECT_THAT(result.event_ns, IsEmpty());
}

TEST(AcceptReport, NumbersBelowZeroAreRefused) {
  Reply good = {};
  good.traced = 1;
  good.work[kOp] = {3, 1000, 1, 64, 2000};
  good.device_bytes = 128;
  CallResult result;
  ASSERT_TRUE(AcceptReport(good, true, result).ok());
  ASSERT_THAT(result.work, SizeIs(3));
  EXPECT_EQ(result.work[kOp].kernel_ns, 1000);
  EXPECT_EQ(result.device_bytes, 128);
  for (int i = 0; i < 7; ++i) {
    Reply bad = good;
    PhaseWork& work = bad.work[i % 3];
    int64_t* const numbers[] = {
        &work.kernels, &work.kernel_ns,   &work.copies,     &work.copied_bytes,
        &work.span_ns, &bad.device_bytes, &bad.leaked_bytes};
    *numbers[i] = -1;
    EXPECT_EQ(AcceptReport(bad, true, result),
              KernelFault(Fault::kBrokeRule, kForged))
        << i;
  }
}

TEST(AcceptReport, WorkIsThatOfATrace) {
  Reply reply = {};
  CallResult untraced, unasked;
  ASSERT_TRUE(AcceptReport(reply, true, untraced).ok());
  EXPECT_THAT(untraced.work, IsEmpty());
  reply.traced = 1;
  ASSERT_TRUE(AcceptReport(reply, false, unasked).ok());
  EXPECT_THAT(unasked.work, IsEmpty());
}

}  // namespace
}  // namespace convlab
