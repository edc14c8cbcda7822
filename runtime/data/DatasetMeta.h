//===- DatasetMeta.h - PREFIX.meta: a dataset, looked at once ---*- C++ -*-===//
//
// A small JSON file beside PREFIX.bin and PREFIX.idx that holds what takes a
// pass over all tokens to find out, the range of their ids, so that a run need
// not read them all before its first step:
//
//   {"version": 1, "type": "u16", "tokens": 303093, "sequences": 17,
//    "documents": 17, "lowest_token": 9, "highest_token": 256,
//    "bin_bytes": 606186, "idx_bytes": 382, "idx_xxh3": "5d0c..."}
//
// It belongs to the files if sizes, counts and the hash of the .idx agree. A
// .bin whose tokens change while its size stays is not noticed here; the loader
// checks every batch it reads.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_DATASETMETA_H
#define MEGA_RUNTIME_DATA_DATASETMETA_H

#include "runtime/data/IndexedDataset.h"

#include <optional>

namespace mega {

struct DatasetMeta {
  /// Of the ids; 0 and -1 if there are no tokens.
  int64_t lowest = 0;
  int64_t highest = -1;

  /// Reads all tokens.
  static DatasetMeta scan(const IndexedDataset &dataset);
  /// PREFIX.meta, or nothing if there is none. Code::BadInput with the fix if
  /// it is damaged or belongs to other files.
  static StatusOr<std::optional<DatasetMeta>>
  load(const IndexedDataset &dataset);
  /// Writes PREFIX.meta for the dataset.
  Status write(const IndexedDataset &dataset) const;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_DATASETMETA_H
