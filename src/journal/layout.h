// The layout of each record: the list of the fields of its payload, in their order on disk.
// docs/internals/journal-format.md shows the same as tables.
//
// A layout is data. The size, the encoder and the decoder (record.cc) and the dump (dump.cc) walk
// through it, so adding a field takes one change. A field that the dump prints has a key and an
// order: sorting by order groups related fields for the reader.
//
// Every payload begins with its kind, one byte, which is not in the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "journal/record.h"

namespace tubed::journal::layout {

// The first byte of a payload. 0 is unused, so zeros are not a record.
enum class Kind : std::uint8_t {
  batch_header = 1,
  added = 2,
  placed = 3,
  removed = 4,
  paused = 5,
  // Since version 2.
  added_with_tags = 6,
  placed_with_marks = 7,
  flushed = 8,
  remembered = 9,
  moved = 10,
  policy_set = 11,
  // Since version 3.
  held = 12,
  applied = 13,
};

// How the dump prints a number.
enum class Form : std::uint8_t { number, hexadecimal, wall_time };

struct Shown {
  std::string_view key = {};
  int order = 0;
  Form form = Form::number;
};

// The number of bytes of a T on disk. Times are wall time, a state is its number.
template <class T>
inline constexpr std::size_t encoded_bytes = sizeof(T);
template <>
inline constexpr std::size_t encoded_bytes<Seconds> = 4;
template <>
inline constexpr std::size_t encoded_bytes<Time> = 8;

// Calls `visit(key, counter)` for each counter of a job, in their order on disk. The key is for the
// dump.
template <class Counters, class Visit>
constexpr void for_each_counter(Counters& counters, Visit visit) {
  visit("reserves", counters.reserves);
  visit("timeouts", counters.timeouts);
  visit("releases", counters.releases);
  visit("buries", counters.buries);
  visit("kicks", counters.kicks);
}
template <>
inline constexpr std::size_t encoded_bytes<JobCounters> = [] {
  std::size_t bytes = 0;
  JobCounters counters;
  for_each_counter(counters, [&bytes](const char*, std::uint32_t) { bytes += 4; });
  return bytes;
}();

// Returns the member of `record` at the end of a path of pointers to members.
template <auto First, auto... Rest, class Record>
constexpr auto& member_of(Record& record) {
  if constexpr (sizeof...(Rest) == 0) {
    return record.*First;
  } else {
    return member_of<Rest...>(record.*First);
  }
}

// The base of all fields that are members of a record.
template <auto... Path>
struct Field {
  Shown shown;

  template <class Record>
  static constexpr auto& in(Record& record) {
    return member_of<Path...>(record);
  }
};

// A value of fixed length.
template <auto... Path>
struct Value : Field<Path...> {
  template <class Record>
  using Type = std::remove_cvref_t<decltype(member_of<Path...>(std::declval<Record&>()))>;
  template <class Record>
  static constexpr std::size_t bytes = encoded_bytes<Type<Record>>;
};

// A member that takes `Bytes` bytes before the texts. Its tag selects the encoding.
template <class Tag, auto Path, std::size_t Bytes>
struct Member : Field<Path> {
  template <class Record>
  static constexpr std::size_t bytes = Bytes;
};

// 8 bytes whose meaning depends on the state of the Placement: the wall time at which a delay ends,
// the order of a buried job, or 0 for a ready job.
template <auto Path>
using Place = Member<struct PlaceTag, Path, 8>;

// The length of a text or a body, as a Number.
template <class Number>
struct LengthTag;
template <auto Path, class Number>
using Length = Member<LengthTag<Number>, Path, sizeof(Number)>;

// The name of a tube. Its Length precedes it.
template <auto Path>
using Text = Member<struct TextTag, Path, 0>;

// The body of a job, the last field. Its Length precedes it.
template <auto Path>
using Body = Member<struct BodyTag, Path, 0>;

// The total length of all tags and marks, and the tags and marks, in the order of Tag and Mark.
struct TagsLength {
  template <class Record>
  static constexpr std::size_t bytes = 4;
};
struct Tags {
  Shown shown;

  template <class Record>
  static constexpr std::size_t bytes = 0;
};

// A tag on disk: its Tag or Mark, the length of its text, two zeros, a 4-byte number, the text.
inline constexpr std::size_t kTagHeaderBytes = 8;

// Calls visit(code, text, number) for each tag and mark of the record.
template <class Visit>
void for_each_tag_of(const AddedWithTags& added, Visit visit) {
  const auto each = [&visit](auto code, std::string_view text, std::uint32_t number) {
    visit(static_cast<std::uint8_t>(code), text, number);
  };
  for_each_tag(added.tags, each);
  for_each_mark(added.marks, each);
}
template <class Visit>
void for_each_tag_of(const PlacedWithMarks& placed, Visit visit) {
  for_each_mark(placed.marks, [&visit](Mark mark, std::string_view text, std::uint32_t number) {
    visit(static_cast<std::uint8_t>(mark), text, number);
  });
}

template <std::size_t Count>
struct Zeros {
  template <class Record>
  static constexpr std::size_t bytes = Count;
};

template <class Record>
struct Layout;

template <>
struct Layout<BatchHeader> {
  static constexpr Kind kind = Kind::batch_header;
  static constexpr std::string_view name = "group";
  static constexpr std::tuple fields{
      Value<&BatchHeader::clean>{{"clean", 8}},
      Zeros<2>{},
      Value<&BatchHeader::facts>{{"facts", 2}},
      Value<&BatchHeader::directory>{{"journal", 7, Form::hexadecimal}},
      Value<&BatchHeader::offset>{},
      Value<&BatchHeader::lsn>{{"number", 1}},
      Value<&BatchHeader::durable>{{"durable", 4}},
      Value<&BatchHeader::next_job_id>{{"next-id", 5}},
      Value<&BatchHeader::written>{{"written", 6, Form::wall_time}},
      Value<&BatchHeader::jobs>{{"jobs", 3}},
  };
};

// The first fields of a job's record, with or without tags.
inline constexpr std::tuple kAddedFields{
    Value<&Added::place, &Placement::state>{{"state", 3}},
    Length<&Added::tube, std::uint8_t>{},
    Zeros<1>{},
    Value<&Added::place, &Placement::priority>{{"pri", 4}},
    Value<&Added::id>{{"id", 1}},
    Value<&Added::place, &Placement::delay>{{"delay", 5}},
    Value<&Added::ttr>{{"ttr", 7}},
    Value<&Added::created>{{"created", 8}},
    Place<&Added::place>{{"place", 6}},
    Value<&Added::counters>{{"counters", 11}},
    Length<&Added::body, std::uint32_t>{{"bytes", 10}},
};

template <>
struct Layout<Added> {
  static constexpr Kind kind = Kind::added;
  static constexpr std::string_view name = "added";
  static constexpr auto fields = std::tuple_cat(
      kAddedFields, std::tuple{Text<&Added::tube>{{"tube", 2}}, Body<&Added::body>{{"body", 12}}});
};

template <>
struct Layout<AddedWithTags> {
  static constexpr Kind kind = Kind::added_with_tags;
  static constexpr std::string_view name = "added";
  static constexpr auto fields =
      std::tuple_cat(kAddedFields, std::tuple{TagsLength{}, Text<&Added::tube>{{"tube", 2}},
                                              Tags{{"tags", 9}}, Body<&Added::body>{{"body", 12}}});
};

// The first fields of a placement's record, with or without marks.
inline constexpr std::tuple kPlacedFields{
    Value<&Placed::place, &Placement::state>{{"state", 2}},
    Zeros<2>{},
    Value<&Placed::place, &Placement::priority>{{"pri", 3}},
    Value<&Placed::id>{{"id", 1}},
    Place<&Placed::place>{{"place", 5}},
    Value<&Placed::place, &Placement::delay>{{"delay", 4}},
    Value<&Placed::counters>{{"counters", 6}},
};

template <>
struct Layout<Placed> {
  static constexpr Kind kind = Kind::placed;
  static constexpr std::string_view name = "placed";
  static constexpr std::tuple fields = kPlacedFields;
};

template <>
struct Layout<PlacedWithMarks> {
  static constexpr Kind kind = Kind::placed_with_marks;
  static constexpr std::string_view name = "placed";
  static constexpr auto fields =
      std::tuple_cat(kPlacedFields, std::tuple{TagsLength{}, Tags{{"tags", 7}}});
};

template <>
struct Layout<Removed> {
  static constexpr Kind kind = Kind::removed;
  static constexpr std::string_view name = "removed";
  static constexpr std::tuple fields{
      Zeros<7>{},
      Value<&Removed::id>{{"id", 1}},
  };
};

template <>
struct Layout<Paused> {
  static constexpr Kind kind = Kind::paused;
  static constexpr std::string_view name = "paused";
  static constexpr std::tuple fields{
      Length<&Paused::tube, std::uint8_t>{},  Zeros<2>{},
      Value<&Paused::duration>{{"pause", 2}}, Value<&Paused::until>{{"until", 3}},
      Text<&Paused::tube>{{"tube", 1}},
  };
};

template <>
struct Layout<Flushed> {
  static constexpr Kind kind = Kind::flushed;
  static constexpr std::string_view name = "flushed";
  static constexpr std::tuple fields{
      Length<&Flushed::tube, std::uint8_t>{},
      Zeros<6>{},
      Text<&Flushed::tube>{{"tube", 1}},
  };
};

template <>
struct Layout<Remembered> {
  static constexpr Kind kind = Kind::remembered;
  static constexpr std::string_view name = "remembered";
  static constexpr std::tuple fields{
      Length<&Remembered::tube, std::uint8_t>{},
      Length<&Remembered::key, std::uint8_t>{},
      Zeros<5>{},
      Value<&Remembered::id>{{"id", 1}},
      Value<&Remembered::until>{{"until", 4}},
      Text<&Remembered::tube>{{"tube", 2}},
      Text<&Remembered::key>{{"key", 3}},
  };
};

template <>
struct Layout<Moved> {
  static constexpr Kind kind = Kind::moved;
  static constexpr std::string_view name = "moved";
  static constexpr std::tuple fields{
      Length<&Moved::tube, std::uint8_t>{},
      Value<&Moved::keeps_key>{{"keeps-key", 3}},
      Zeros<5>{},
      Value<&Moved::id>{{"id", 1}},
      Text<&Moved::tube>{{"tube", 2}},
  };
};

template <>
struct Layout<PolicySet> {
  static constexpr Kind kind = Kind::policy_set;
  static constexpr std::string_view name = "policy";
  static constexpr std::tuple fields{
      Length<&PolicySet::tube, std::uint8_t>{},  Length<&PolicySet::key, std::uint8_t>{},
      Length<&PolicySet::value, std::uint8_t>{}, Zeros<4>{},
      Text<&PolicySet::tube>{{"tube", 1}},       Text<&PolicySet::key>{{"key", 2}},
      Text<&PolicySet::value>{{"value", 3}},
  };
};

template <>
struct Layout<Held> {
  static constexpr Kind kind = Kind::held;
  static constexpr std::string_view name = "held";
  static constexpr std::tuple fields{
      Zeros<7>{},
      Value<&Held::id>{{"id", 1}},
      Value<&Held::until>{{"until", 2}},
  };
};

template <>
struct Layout<Applied> {
  static constexpr Kind kind = Kind::applied;
  static constexpr std::string_view name = "applied";
  static constexpr std::tuple fields{
      Zeros<7>{},
      Value<&Applied::index>{{"index", 1}},
      Value<&Applied::term>{{"term", 2}},
      Value<&Applied::chain>{{"chain", 3, Form::hexadecimal}},
  };
};

// Calls `visit(field)` for each field of a Record, in order.
template <class Record, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... fields) { (visit(fields), ...); }, Layout<Record>::fields);
}

// The size of a payload without its texts, including its kind.
template <class Record>
inline constexpr std::size_t fixed_bytes = [] {
  std::size_t bytes = 1;
  for_each_field<Record>(
      [&bytes]<class Field>(const Field&) { bytes += Field::template bytes<Record>; });
  return bytes;
}();

}  // namespace tubed::journal::layout
