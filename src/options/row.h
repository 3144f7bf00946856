// The options of a program as data: one OptionRow for each option, flag and positional argument.
// The command line is parsed by the rows (options/parse.h), and the help, the completions and the
// documentation are made from them. The daemon has rows of another kind (config/table.h): they also
// describe keys of a file, and have actions in place of members.
//
// A row says how the option is written, what it takes and which member of an options struct it
// sets. A member that is a std::optional stays empty unless the option is given; a vector takes
// several values. The initial value of a member is the option's default.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"

namespace tubed::options {

// --- What an option takes

struct ValueType {
  enum class Kind : std::uint8_t {
    flag,  // takes no value
    text,
    tube,          // a tube's name
    file,          // a path
    command,       // a program
    count,         // a whole number
    number,        // a number that may have a fraction
    seconds,       // a time in whole seconds: 90, 90s, 5m, 2h, 1d
    milliseconds,  // a time in whole milliseconds, for a command: also 500ms
    time,          // a time in seconds that may have a fraction: also 0.5 and 50ms
    size,          // bytes: 65535, 64KiB, 1GiB
    choice         // one of `choices`
  };

  Kind kind = Kind::flag;
  std::string_view placeholder{};  // how the help writes the value
  // The range of count, seconds, milliseconds and size; min_number and max_number: of number and
  // time.
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  double min_number = 0;
  double max_number = 0;
  std::span<const std::string_view> choices{};
  // Of text, tube, file and command: says what is wrong with a value. Null: any text is right.
  Result<void> (*check)(std::string_view text) = nullptr;
};

// The value as help and messages show it: "TIME", or "STATE:{ready,buried}" for a choice.
std::string shown_value(const ValueType& type);

inline constexpr ValueType kFile{ValueType::Kind::file, "FILE"};

constexpr ValueType text(std::string_view placeholder) {
  return {ValueType::Kind::text, placeholder};
}
constexpr ValueType count(std::uint64_t min,
                          std::uint64_t max = std::numeric_limits<std::uint64_t>::max(),
                          std::string_view placeholder = "N") {
  return {ValueType::Kind::count, placeholder, min, max};
}
constexpr ValueType number(double min, double max) {
  return {
      .kind = ValueType::Kind::number, .placeholder = "N", .min_number = min, .max_number = max};
}
constexpr ValueType seconds(std::uint64_t max = std::numeric_limits<std::uint32_t>::max()) {
  return {ValueType::Kind::seconds, "TIME", 0, max};
}
// The times that a server takes, which are at most 2^32 - 1 seconds.
constexpr ValueType milliseconds() {
  return {ValueType::Kind::milliseconds, "TIME", 0,
          std::numeric_limits<std::uint32_t>::max() * std::uint64_t{1000}};
}
constexpr ValueType time(double min, double max) {
  return {
      .kind = ValueType::Kind::time, .placeholder = "TIME", .min_number = min, .max_number = max};
}
constexpr ValueType size(std::uint64_t min, std::uint64_t max) {
  return {ValueType::Kind::size, "SIZE", min, max};
}
constexpr ValueType choice(std::string_view placeholder,
                           std::span<const std::string_view> choices) {
  return {.kind = ValueType::Kind::choice, .placeholder = placeholder, .choices = choices};
}

// --- Rows

// A row is constexpr data: its strings are literals, and it owns nothing. `assign` and `show`
// receive the options struct as a void pointer; option() makes them for the struct's type, so the
// caller must pass the struct of the same rows.
struct OptionRow {
  std::string_view names;  // "-t,--tube"; a name without hyphens is a positional argument
  ValueType type{};
  std::string_view help{};
  bool required = false;
  bool shows_default = false;
  std::string_view default_text{};  // shown as the default of an empty std::optional
  // Not empty: the value may be left out, and is then this. It is the next word only if that word
  // is an argument and a value of the type.
  std::string_view bare_value{};
  char separator = '\0';                       // of a vector: separates values within one word
  std::string_view env{};                      // the environment variable that also sets it
  std::array<std::string_view, 3> excludes{};  // other options, by name
  std::string_view needs{};
  std::string_view group{};  // the heading in the help; empty: the heading of all options

  // Filled in by option().
  bool repeats = false;
  // Sets the member to normalized values. Precondition: at least one; exactly one unless `repeats`.
  void (*assign)(void* options, const std::vector<std::string>& values) = nullptr;
  // The default as the help shows it.
  std::string (*show)(const void* options) = nullptr;
};

// A row of each program and subcommand, which sets no member: parse() reports that it is given.
inline constexpr OptionRow kHelpOption{.names = "-h,--help", .help = "Print this help, and exit"};

// The names of a row: first the names with one hyphen, then those with two, then the positional
// name.
struct OptionNames {
  std::vector<std::string> names;  // with their hyphens
  std::string positional;          // empty: the row has no such name

  // How messages name it as an option: by the first name with two hyphens, else the first of all.
  const std::string& shown() const;
};
OptionNames split_names(const OptionRow& row);
// True if `name` is one of its names, with their hyphens, or the positional name.
bool has_name(const OptionRow& row, std::string_view name);
// True if one of the rows excludes the other: at most one of the two may be given.
bool exclude_each_other(const OptionRow& row, const OptionRow& other);

namespace detail {

template <class Member>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class Member>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Precondition: `text` was normalized, and the member's type holds the range of the row.
template <class Value>
Value parsed(const std::string& text) {
  if constexpr (std::same_as<Value, std::string>) {
    return text;
  } else if constexpr (std::same_as<Value, std::chrono::milliseconds>) {
    return Value(parsed<std::int64_t>(text));
  } else {
    Value value{};
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    TUBED_ASSERT(read.ec == std::errc() && read.ptr == end);
    return value;
  }
}

template <class Member>
void assign_member(Member& member, const std::vector<std::string>& values) {
  if constexpr (kIsVector<Member>) {
    member.clear();
    for (const std::string& value : values) {
      member.push_back(parsed<typename Member::value_type>(value));
    }
  } else if constexpr (kIsOptional<Member>) {
    member = parsed<typename Member::value_type>(values.front());
  } else if constexpr (std::same_as<Member, bool>) {
    member = values.front() == "true";
  } else {
    member = parsed<Member>(values.front());
  }
}

template <class Member>
std::string show_member(const Member& member) {
  if constexpr (kIsVector<Member> || kIsOptional<Member>) {
    return {};
  } else if constexpr (std::same_as<Member, std::chrono::milliseconds>) {
    return member.count() % 1000 == 0 ? fmt::format("{}", member.count() / 1000)
                                      : fmt::format("{}ms", member.count());
  } else {
    return fmt::format("{}", member);
  }
}

// Follows a path of member pointers from a struct to a member of a nested struct.
template <class Options>
Options& follow(Options& options) {
  return options;
}
template <class Options, class Member, class... Rest>
auto& follow(Options& options, Member member, Rest... rest) {
  return follow(options.*member, rest...);
}

// The class that a member pointer belongs to.
template <class Member>
struct ClassOf;
template <class Class, class Member>
struct ClassOf<Member Class::*> {
  using type = Class;
};

}  // namespace detail

// The row for the member to which the path leads: &Options::member, or through other structs. The
// path begins in the struct that `Options` names, or in the class of its first step.
template <auto kFirst, auto... kRest>
constexpr OptionRow option(OptionRow row) {
  using Options = typename detail::ClassOf<decltype(kFirst)>::type;
  using Member =
      std::remove_reference_t<decltype(detail::follow(std::declval<Options&>(), kFirst, kRest...))>;
  row.repeats = detail::kIsVector<Member>;
  row.assign = [](void* options, const std::vector<std::string>& values) {
    detail::assign_member(detail::follow(*static_cast<Options*>(options), kFirst, kRest...),
                          values);
  };
  row.show = [](const void* options) {
    return detail::show_member(
        detail::follow(*static_cast<const Options*>(options), kFirst, kRest...));
  };
  return row;
}

}  // namespace tubed::options
