#include "cluster/entry.h"

#include <algorithm>

#include "base/assert.h"
#include "base/crc32c.h"
#include "journal/format.h"
#include "journal/little_endian.h"
#include "journal/record.h"

namespace tubed::cluster {

namespace {

using journal::load_little;
using journal::store_little;

// No segment has this seed, so a record of a segment is not valid in an entry.
constexpr std::uint32_t kEntrySeed = 0x7ef1'e1d5;
// Times of the cluster are already wall time.
constexpr journal::WallClock kClusterTime{};

// The finalizer of SplitMix64: each bit of the result depends on each bit of `x`.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace

EntryWriter::EntryWriter() : text_(kEntryHeaderBytes, '\0') {}

void EntryWriter::add(const Fact& fact) {
  journal::append_record(text_, kEntrySeed, fact, kClusterTime);
  ++facts_;
  use_ids_below(id_used_by(fact) + 1);
}

Bytes EntryWriter::finish(EntryHeader header) {
  char* at = text_.data();
  const auto put = [&at](auto value) {
    store_little(at, value);
    at += sizeof value;
  };
  put(header.version);
  put(header.level);
  put(facts_);
  put(next_job_id_);
  put(header.time.time_since_epoch().count());
  put(header.chain);
  put(header.leader);
  put(std::uint64_t{0});
  TUBED_ASSERT(at == text_.data() + kEntryHeaderBytes);
  Bytes entry = Bytes::copy_of(text_);
  text_.resize(kEntryHeaderBytes);
  facts_ = 0;
  return entry;
}

std::optional<EntryHeader> read_entry_header(std::string_view entry, Level known) {
  if (entry.size() < kEntryHeaderBytes) return std::nullopt;
  const char* at = entry.data();
  const auto take = [&at](auto& value) {
    value = load_little<std::remove_reference_t<decltype(value)>>(at);
    at += sizeof value;
  };
  EntryHeader header;
  take(header.version);
  take(header.level);
  take(header.facts);
  take(header.next_job_id);
  std::int64_t time = 0;
  take(time);
  header.time = Time(Duration(time));
  take(header.chain);
  take(header.leader);
  if (header.version != 1 || header.level > known) return std::nullopt;
  return header;
}

Level level_of_entry(std::string_view entry) {
  if (entry.size() < kEntryHeaderBytes) return 0;
  return load_little<Level>(entry.data() + sizeof(std::uint16_t));
}

bool read_facts(std::string_view entry, FactSink& sink, Level known) {
  const auto header = read_entry_header(entry, known);
  if (!header) return false;
  std::string_view rest = entry.substr(kEntryHeaderBytes);
  for (std::uint32_t i = 0; i < header->facts; ++i) {
    const journal::Parsed parsed = journal::last_format().parse(rest, kEntrySeed, kClusterTime);
    if (parsed.kind != journal::Parsed::Kind::record) return false;
    const auto* fact = std::get_if<Fact>(&parsed.record);
    if (fact == nullptr) return false;
    sink.fact(*fact);
    rest.remove_prefix(parsed.bytes);
  }
  return rest.empty();
}

Chain chain_after(Chain before, Index index, const Entry& entry) {
  const std::uint32_t content = crc32c(static_cast<std::uint32_t>(entry.type), entry.data.view());
  Chain chain = mixed(before ^ index);
  chain = mixed(chain ^ entry.term);
  return mixed(chain ^ (std::uint64_t{content} << 32U | entry.data.size()));
}

}  // namespace tubed::cluster
