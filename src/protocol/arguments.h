// Arguments: parsing of the words after a command.
//
// A command's argument struct is its schema: `fields` names the members in the order of the line.
// Arity, parsing and documentation are derived from it and cannot disagree.
//
// Grammar: fields are separated by one space; a number may be preceded by more. Numbers are decimal
// digits and nothing else; a number that its type cannot hold is malformed. The line may end before
// a field that is a std::optional, and before tags or filters. Nothing may follow the last field.
// [notes: Lines and bodies]
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "facts/job_filter.h"
#include "facts/policy.h"
#include "facts/types.h"

namespace tubed::protocol {

// A tube's name. It refers to the line and is valid as long as the line is.
struct TubeName {
  std::string_view text;
};

// The name of a tube that numbers follow: more than one space may precede it.
struct SpacedTubeName : TubeName {};

// The name of a group, which has the form of the name of a tube.
struct GroupName : TubeName {};

// The rest of a line as a token: 1 to 217 bytes without white space and control characters. Empty:
// the rest is no such text. It refers to the line and is valid as long as the line is.
struct Token {
  static constexpr std::size_t kMostBytes = 217;

  std::string_view text;
};

// A word without spaces. It refers to the line and is valid as long as the line is.
struct Word {
  std::string_view text;
};

// A time in milliseconds, that is given as a TimeSpan is and up to 2^32 s.
struct Milliseconds {
  std::uint64_t count = 0;
};

// A priority and a delay, which come together.
struct PriorityAndDelay {
  Priority priority = 0;
  TimeSpan delay;
};

// The announced length of a body, without its line end.
struct BodySize {
  std::uint32_t bytes = 0;
};

// A number in a range.
template <std::uint32_t kLeast, std::uint32_t kMost>
struct Bounded {
  std::uint32_t value = kLeast;
};

// A list of at most kMost job ids. It refers to the line and is valid as long as the line is.
struct JobIds {
  static constexpr std::size_t kMost = 1000;

  std::string_view text;
  std::uint32_t count = 0;

  // Calls visit(JobId) for each.
  template <class Visit>
  void for_each(Visit visit) const;
};

// The tags of a put, as text that parse_tags() accepts; empty: none. It refers to the line and is
// valid as long as the line is.
struct TagText {
  std::string_view text;
};

// The filters of a list of jobs, as text that parse_filters() accepts; empty: none. It refers to
// the line and is valid as long as the line is.
struct FilterText {
  std::string_view text;
};

// The key of a policy and a value that it can have, or kNoPolicyValue. The value refers to the line
// and is valid as long as the line is.
struct PolicySetting {
  PolicyKey key = PolicyKey::max_attempts;
  std::string_view value;
};

// The tags that the text names: `name:value` words with one space or more before each but the
// first. False: one of them is malformed, unknown or there twice, or the text is empty or ends with
// a space. The tags refer to the text. [extension: put tags]
bool parse_tags(std::string_view text, JobTags& tags);

// The tags of a line that was parsed.
JobTags tags_of(const TagText& tags);

// The filters that the text names, with one space between. False: one of them is malformed. The
// tags of the filter refer to the text. [extension: list-jobs with filters]
bool parse_filters(std::string_view text, JobFilter& filter);

// The filters of a line that was parsed.
JobFilter filter_of(const FilterText& filters);

// One of the words of `Words::kWords`, with its value from `Words::kValues`.
template <class Words>
struct OneOf {
  static_assert(Words::kWords.size() == Words::kValues.size());

  std::uint8_t index = 0;

  std::string_view word() const { return Words::kWords[index]; }
  const auto& value() const { return Words::kValues[index]; }
};

// The part of a line that is not parsed yet.
class ArgumentCursor {
 public:
  explicit ArgumentCursor(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  // Skips the space between two fields. False if the next byte is no space.
  bool separator();

  // Reads one field. False if the line does not continue with a field of that type.
  bool read(std::uint64_t& value);
  bool read(std::uint32_t& value);
  bool read(Seconds& value) { return read(value.count); }
  bool read(BodySize& value) { return read(value.bytes); }
  bool read(TubeName& value);
  bool read(SpacedTubeName& value);
  bool read(Word& value);
  bool read(Token& value);
  // Whole seconds ("5") or milliseconds ("500ms"). [extension: milliseconds]
  bool read(TimeSpan& value) {
    const std::string_view field = rest_;
    if (read(value.seconds)) [[likely]]
      return true;
    rest_ = field;
    return read_milliseconds(value);
  }
  bool read(Milliseconds& value);
  bool read(JobIds& value);
  bool read(TagText& value);
  bool read(FilterText& value);
  bool read(PolicySetting& value);
  bool read(PriorityAndDelay& value) {
    return read(value.priority) && separator() && read(value.delay);
  }
  template <std::uint32_t kLeast, std::uint32_t kMost>
  bool read(Bounded<kLeast, kMost>& value) {
    return read(value.value) && value.value >= kLeast && value.value <= kMost;
  }
  template <class Words>
  bool read(OneOf<Words>& value) {
    return read_word(Words::kWords, value.index);
  }

 private:
  // A number, and whether "ms" follows it.
  [[gnu::cold]] bool read_unit(std::uint64_t& number, bool& in_milliseconds);
  [[gnu::cold]] bool read_milliseconds(TimeSpan& value);
  bool read_word(std::span<const std::string_view> words, std::uint8_t& index);
  bool at_field_end() const { return rest_.empty() || rest_.front() == ' '; }

  std::string_view rest_;
};

template <class Visit>
void JobIds::for_each(Visit visit) const {
  ArgumentCursor cursor(text);
  JobId id = 0;
  for (std::uint32_t left = count; left > 0; --left) {
    cursor.read(id);
    visit(id);
  }
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
// The line may end before the field.
template <class T>
inline constexpr bool kMayBeMissing =
    kIsOptional<T> || std::is_same_v<T, TagText> || std::is_same_v<T, FilterText>;

template <auto Member>
struct Field {
  std::string_view name;
};

template <auto Member>
constexpr Field<Member> field(std::string_view name) {
  return {name};
}

template <class... Fields>
constexpr std::tuple<Fields...> schema(Fields... fields) {
  return {fields...};
}

// Parses `text`, the line after the command's word and its space, into `arguments`, whose type is
// the schema. False if it is malformed.
template <class Arguments>
bool parse_arguments(std::string_view text, Arguments& arguments) {
  ArgumentCursor cursor(text);
  bool first = true;
  const auto read_one = [&]<auto Member>(const Field<Member>&) {
    auto& value = arguments.*Member;
    using Type = std::remove_reference_t<decltype(value)>;
    if (kMayBeMissing<Type> && cursor.at_end()) return true;
    if (!first && !cursor.separator()) return false;
    first = false;
    if constexpr (kIsOptional<Type>) {
      return cursor.read(value.emplace());
    } else {
      return cursor.read(value);
    }
  };
  const bool all = std::apply([&](const auto&... fields) { return (read_one(fields) && ...); },
                              Arguments::fields);
  return all && cursor.at_end();
}

// The announced body length of a line that is otherwise malformed: the field after `fields_before`
// others. False if that is not a number of 32 bits. [compat: put-body-swallowed]
bool salvage_body_size(std::string_view text, std::size_t fields_before, BodySize& size);

// The type of a field, for the reference page.
constexpr std::string_view describe(const std::uint64_t*) {
  return "integer < 2^64";
}
constexpr std::string_view describe(const std::uint32_t*) {
  return "integer < 2^32";
}
constexpr std::string_view describe(const Seconds*) {
  return "seconds, integer < 2^32";
}
constexpr std::string_view describe(const BodySize*) {
  return "bytes, integer < 2^32";
}
constexpr std::string_view describe(const JobIds*) {
  return "1 to 1000 ids, with spaces between";
}
constexpr std::string_view describe(const PriorityAndDelay*) {
  return "priority and delay, integers < 2^32; the delay also as 500ms";
}
constexpr std::string_view describe(const TagText*) {
  return "words with spaces between: idp:<key>[:<seconds>], con:<key>[:<limit>], grp:<group>, "
         "aft:<group>, "
         "max:<attempts>[:<dead>], ttl:<seconds>";
}
constexpr std::string_view describe(const FilterText*) {
  return "filters with a space between: body:<text>, age><seconds>, age<<seconds>, pri><pri>, "
         "pri<<pri>, failures><count>, tag:<name>:<value>";
}
constexpr std::string_view describe(const PolicySetting*) {
  return "key of a policy, and its value or -";
}
constexpr std::string_view describe(const Word*) {
  return "word";
}
constexpr std::string_view describe(const Token*) {
  return "1 to 217 bytes without white space and control characters";
}
constexpr std::string_view describe(const TimeSpan*) {
  return "seconds, integer < 2^32, or milliseconds as 500ms";
}
constexpr std::string_view describe(const Milliseconds*) {
  return "seconds, or milliseconds with ms, up to 2^32 s";
}
constexpr std::string_view describe(const Bounded<1, 1000>*) {
  return "integer from 1 to 1000";
}
constexpr std::string_view describe(const Bounded<1, 9999>*) {
  return "integer from 1 to 9999";
}
template <class Words>
constexpr std::string_view describe(const OneOf<Words>*) {
  return Words::kDescription;
}
constexpr std::string_view describe(const TubeName*) {
  return "tube name, 1 to 200 bytes";
}
template <class T>
constexpr std::string_view describe(const std::optional<T>*) {
  return describe(static_cast<const T*>(nullptr));
}

}  // namespace tubed::protocol
