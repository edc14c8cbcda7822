//===- DescribeDataset.h - A dataset for people to read ---------*- C++ -*-===//
//
// What `mega-data inspect` prints. Reads all tokens once.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_DESCRIBEDATASET_H
#define MEGA_RUNTIME_DATA_DESCRIBEDATASET_H

#include "runtime/data/IndexedDataset.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace mega {

/// A few lines, each `name  value`: type, counts, lengths, the range of token
/// ids, the first `firstTokens` ids, and their text: by `tokenizer`, or without
/// one (null) as bytes if they may be such.
std::string describeDataset(const IndexedDataset &dataset,
                            int64_t firstTokens = 16,
                            const Tokenizer *tokenizer = nullptr);

} // namespace mega

#endif // MEGA_RUNTIME_DATA_DESCRIBEDATASET_H
