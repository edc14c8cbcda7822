//===- TranspositionShapes.h - What the cases are made of -------*- C++ -*-===//
#ifndef MEGA_TEST_RUNTIME_CPU_TRANSPOSITIONSHAPES_H
#define MEGA_TEST_RUNTIME_CPU_TRANSPOSITIONSHAPES_H

#include "test/runtime/cpu/TranspositionCases.h"

namespace mega::test {

using Wholes = Case::Wholes;

inline constexpr DataType kF = DataType::F32;
/// Everything divides by 2 and by 3, but the vocabulary and kDim.
inline constexpr int64_t kBatch = 6, kSequence = 6, kHidden = 12, kHeads = 6;
inline constexpr int64_t kDim = 4, kVocabulary = 11;
inline constexpr int64_t kTokens = kBatch * kSequence;
inline const BufferType kX(kF, {kBatch, kSequence, kHidden});
inline const BufferType kHeadsX(kF, {kBatch, kSequence, kHeads, kDim});
inline const BufferType kStats(kF, {kBatch, kSequence});
inline const BufferType kVector(kF, {kHidden});
inline const BufferType kTable(kF, {kVocabulary, kHidden});
inline const BufferType kIds(DataType::I32, {kBatch, kSequence});

/// Of tokens; every row of the vocabulary occurs.
std::vector<int> someIds(int ignored);
Values asValues(const std::vector<int> &ids);

Values plus(Values a, const Values &b);
/// The gradient of the first result is that of an operand.
void pass(Use &use, size_t operand);

void addNorms(std::vector<Case> &cases);
void addAttention(std::vector<Case> &cases);
void addHead(std::vector<Case> &cases);

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_CPU_TRANSPOSITIONSHAPES_H
