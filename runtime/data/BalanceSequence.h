//===- BalanceSequence.h - Equal work for the ranks of cp -------*- C++ -*-===//
//
// The order of a row in which contiguous pieces see equally much
// (SequenceOrder.h). Under a causal mask that keeps to documents, a token sees
// as many tokens as its position says, and itself: that is its work. A row is
// cut into blocks of neighbouring tokens, and every rank gets equally many:
//
//   positions  0 1 2 3 4 5 6 7 0 1 2 3 0 1 2 3        two ranks, blocks of 2
//   work        3   7  11  15   3   7   3   7         28 of 56 each
//   rank 0      x   .   .   x   x   x   .   .
//   rank 1      .   x   x   .   .   .   x   x
//
// Depends on the positions alone, so every rank that knows the lengths of the
// documents finds the same order.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_BALANCESEQUENCE_H
#define MEGA_RUNTIME_DATA_BALANCESEQUENCE_H

#include <cstdint>
#include <span>
#include <vector>

namespace mega {

/// One thread at a time. Allocates when it is made.
class BalanceSequence {
public:
  /// Rows of `length` tokens, a multiple of the `ranks`.
  BalanceSequence(int64_t length, int64_t ranks);

  int64_t length() const { return std::ssize(order_); }
  int64_t ranks() const { return std::ssize(loads); }
  /// Tokens of a block: the largest divisor of a rank's tokens up to 64.
  int64_t blockTokens() const { return blockTokens_; }

  /// Where in the row token i of its balanced order is, for every i: first the
  /// tokens of rank 0, in ascending order. Valid until the next call.
  std::span<const int32_t> order(std::span<const int32_t> positions);

private:
  void deal();
  bool swapOnce();

  int64_t blockTokens_ = 1;
  int64_t blocksOfRank = 1;
  /// Of every block: its work.
  std::vector<int64_t> work;
  /// Blocks, the heaviest first.
  std::vector<int32_t> heaviest;
  /// The blocks of every rank, the heaviest first.
  std::vector<int32_t> dealt;
  /// Of every rank: blocks dealt so far, and their work.
  std::vector<int64_t> counts, loads;
  std::vector<int32_t> order_;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_BALANCESEQUENCE_H
