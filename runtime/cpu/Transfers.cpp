//===- Transfers.cpp - Between the stages of a pipeline -------------------===//
#include "runtime/comm/Communicator.h"
#include "runtime/cpu/Groups.h"
#include "runtime/cpu/KernelList.h"

#include <algorithm>
#include <cstring>

namespace mega {
namespace {

void start(const KernelContext &ctx, const KernelArguments &args, bool send) {
  const View &x = args[0];
  const GroupMember &member = memberOf(ctx, args);
  const auto peer =
      static_cast<int>((member.place + args.integers[1]) % member.size);
  auto transfer =
      send ? member.communicator->postSend(x.data, x.elements(), x.type, peer)
           : member.communicator->postReceive(x.data, x.elements(), x.type,
                                              peer);
  if (!transfer.isOk()) {
    return keep(ctx, std::move(transfer).takeStatus());
  }
  ctx.groups->started.push_back(
      {x.data, send, transfer->index, transfer->generation});
}

void wait(const KernelContext &ctx, const KernelArguments &args, bool send) {
  auto &started = ctx.groups->started;
  const auto it = std::find_if(
      started.begin(), started.end(), [&](const RankGroups::Started &each) {
        return each.data == args[0].data && each.send == send;
      });
  if (it == started.end()) {
    return keep(ctx, makeError(Code::Internal,
                               "waits for a transfer that was not started"));
  }
  const Transfer transfer{it->index, it->generation};
  *it = started.back();
  started.pop_back();
  keep(ctx, memberOf(ctx, args).communicator->wait(transfer));
}

} // namespace

void cpu::sendStart(const KernelContext &ctx, const KernelArguments &args) {
  start(ctx, args, true);
}
void cpu::sendWait(const KernelContext &ctx, const KernelArguments &args) {
  wait(ctx, args, true);
}
void cpu::receiveStart(const KernelContext &ctx, const KernelArguments &args) {
  start(ctx, args, false);
}
void cpu::receiveWait(const KernelContext &ctx, const KernelArguments &args) {
  wait(ctx, args, false);
}

void cpu::sumStages(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1];
  const GroupMember &member = memberOf(ctx, args);
  keep(ctx, member.communicator->allReduce(x.data, y.data, x.elements(), x.type,
                                           Reduction::Sum));
}

} // namespace mega
