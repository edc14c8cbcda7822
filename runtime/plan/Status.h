//===- Status.h - Errors as values ------------------------------*- C++ -*-===//
//
// Functions that can fail return `Status` (nothing on success) or
// `StatusOr<T>`. A status carries the process exit code it leads to and one
// message; callers add context in front with `MEGA_RETURN_IF_ERROR_CONTEXT`.
// Neither throws. Both are cheap to move and thread-compatible.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_STATUS_H
#define MEGA_RUNTIME_PLAN_STATUS_H

#include <fmt/format.h>

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace mega {

/// What went wrong, as the exit code the process ends with (docs/exit-codes).
enum class Code : int {
  Ok = 0,
  /// The run failed; trying again may help.
  Failed = 1,
  /// The command line is wrong.
  Usage = 2,
  /// The plan, the data or a checkpoint is damaged or does not fit: never
  /// worth a retry.
  BadInput = 65,
  /// A peer, the rendezvous or the device cannot be reached.
  Unavailable = 69,
  /// A bug in this project.
  Internal = 70,
  /// Reading or writing failed in the operating system.
  Io = 74,
  /// Preempted after a checkpoint; requeue.
  Preempted = 75,
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message)
      : error(std::make_unique<Error>(Error{code, std::move(message)})) {
    assert(code != Code::Ok);
  }

  static Status ok() { return {}; }
  bool isOk() const { return !error; }
  Code code() const { return error ? error->code : Code::Ok; }
  const std::string &message() const {
    static const std::string empty;
    return error ? error->message : empty;
  }

  /// The same error with `context: ` in front of its message.
  Status withContext(const std::string &context) && {
    if (error) {
      error->message = context + ": " + error->message;
    }
    return std::move(*this);
  }

private:
  struct Error {
    Code code;
    std::string message;
  };
  std::unique_ptr<Error> error;
};

template <typename T> class [[nodiscard]] StatusOr {
public:
  StatusOr(T value) : value_(std::move(value)) {}
  StatusOr(Status status) : status_(std::move(status)) {
    assert(!status_.isOk() && "a StatusOr needs a value or an error");
  }

  bool isOk() const { return status_.isOk(); }
  Status takeStatus() && { return std::move(status_); }
  const Status &status() const { return status_; }
  T &operator*() & { return *value_; }
  const T &operator*() const & { return *value_; }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }
  T take() && { return std::move(*value_); }

private:
  Status status_;
  std::optional<T> value_;
};

template <typename... Args>
Status makeError(Code code, fmt::format_string<Args...> format,
                 Args &&...args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status badInput(fmt::format_string<Args...> format, Args &&...args) {
  return {Code::BadInput, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status ioError(fmt::format_string<Args...> format, Args &&...args) {
  return {Code::Io, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Status usageError(fmt::format_string<Args...> format, Args &&...args) {
  return {Code::Usage, fmt::format(format, std::forward<Args>(args)...)};
}

} // namespace mega

#define MEGA_CONCAT_(a, b) a##b
#define MEGA_CONCAT(a, b) MEGA_CONCAT_(a, b)

/// Returns from the enclosing function if `expression` is an error.
#define MEGA_RETURN_IF_ERROR(expression)                                       \
  do {                                                                         \
    ::mega::Status megaStatus_ = (expression);                                 \
    if (!megaStatus_.isOk()) {                                                 \
      return megaStatus_;                                                      \
    }                                                                          \
  } while (false)

/// The same, with fmt-style context in front of the message.
#define MEGA_RETURN_IF_ERROR_CONTEXT(expression, ...)                          \
  do {                                                                         \
    ::mega::Status megaStatus_ = (expression);                                 \
    if (!megaStatus_.isOk()) {                                                 \
      return std::move(megaStatus_).withContext(fmt::format(__VA_ARGS__));     \
    }                                                                          \
  } while (false)

/// Declares `lhs` with the value of `expression`, or returns its error.
#define MEGA_ASSIGN_OR_RETURN(lhs, expression)                                 \
  MEGA_ASSIGN_OR_RETURN_(MEGA_CONCAT(megaOr_, __LINE__), lhs, expression)
// `temporary` and `lhs` are declared here: names, which take no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define MEGA_ASSIGN_OR_RETURN_(temporary, lhs, expression)                     \
  auto temporary = (expression);                                               \
  if (!temporary.isOk()) {                                                     \
    return std::move(temporary).takeStatus();                                  \
  }                                                                            \
  lhs = std::move(temporary).take()
// NOLINTEND(bugprone-macro-parentheses)

#endif // MEGA_RUNTIME_PLAN_STATUS_H
