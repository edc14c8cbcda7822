//===- LoadTokenizer.h - The tokenizer a user names -------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_TOKENIZER_LOADTOKENIZER_H
#define MEGA_RUNTIME_TOKENIZER_LOADTOKENIZER_H

#include "runtime/tokenizer/Tokenizer.h"

#include <memory>

namespace mega {

/// `byte`, or a file: tokenizer.json (BPE) or sentencepiece's tokenizer.model,
/// told apart by content. Code::Io if it cannot be read, Code::BadInput if it
/// is neither or holds what is not supported.
StatusOr<std::unique_ptr<Tokenizer>> loadTokenizer(const std::string &name);

/// The id that ends a document: `wanted`, a token or an id, or if that is
/// empty the tokenizer's own. Code::Usage, with what there is, if there is no
/// such token or nothing to choose.
StatusOr<int32_t> chooseEndOfDocument(const Tokenizer &tokenizer,
                                      const std::string &wanted);

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_LOADTOKENIZER_H
