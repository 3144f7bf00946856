#include "tests/journal/test_file.h"

#include <algorithm>
#include <utility>

namespace tubed::journal {

namespace {

constexpr std::uint64_t kSectorBytes = 512;

}  // namespace

void TestFile::resize(ChangeNumber number, std::uint64_t bytes) {
  now_.resize(bytes);
  changes_.push_back({.number = number, .resize = true, .at = bytes});
}

void TestFile::write(ChangeNumber number, std::uint64_t at, const std::string& part) {
  apply(now_, {.at = at, .data = part});
  const auto same = std::find_if(changes_.rbegin(), changes_.rend(),
                                 [&](const Change& change) { return change.number == number; });
  if (same == changes_.rend()) {
    changes_.push_back({.number = number, .at = at, .data = part});
  } else {
    same->data += part;
  }
}

void TestFile::sync(ChangeNumber before, ChangeNumber own) {
  for (Change& change : changes_) {
    const bool covered = change.number < before || change.number == own;
    if (covered && !change.given_up) change.durable = true;
  }
  fold();
}

void TestFile::give_up(ChangeNumber before, ChangeNumber own) {
  for (Change& change : changes_) {
    const bool covered = change.number < before || change.number == own;
    if (covered && !change.durable) change.given_up = true;
  }
}

void TestFile::begin_anew() {
  for (Change& change : changes_) change.given_up = false;
}

void TestFile::settle(std::string contents) {
  durable_ = contents;
  now_ = std::move(contents);
  changes_.clear();
}

std::string TestFile::after_power_loss(Random& random) const {
  std::string image = durable_;
  bool clipped = false;  // an extension was lost, together with data written after it
  for (const Change& change : changes_) {
    if (change.durable) {
      apply(image, change);
    } else if (!change.resize) {
      tear(image, change, clipped, random);
    } else if (coin(random)) {
      apply(image, change);
    } else if (change.at > image.size()) {
      clipped = coin(random);
    }
  }
  return image;
}

void TestFile::apply(std::string& image, const Change& change) {
  if (change.resize) return image.resize(change.at);
  const std::uint64_t end = change.at + change.data.size();
  if (image.size() < end) image.resize(end);
  image.replace(change.at, change.data.size(), change.data);
}

// If `clipped`, applies nothing beyond the image's end.
void TestFile::apply_part(std::string& image, const Change& change, std::size_t from,
                          std::size_t to, bool clipped) {
  if (clipped) {
    if (change.at + from >= image.size()) return;
    to = std::min<std::size_t>(to, image.size() - change.at);
  }
  apply(image, {.at = change.at + from, .data = change.data.substr(from, to - from)});
}

void TestFile::tear(std::string& image, const Change& change, bool clipped, Random& random) {
  const std::size_t size = change.data.size();
  switch (random() % 8) {
    case 0:
    case 1:
    case 2:
      return apply_part(image, change, 0, size, clipped);
    case 3:
    case 4:
      return;
    case 5:
      return apply_part(image, change, 0, random() % (size + 1), clipped);
    default:
      break;
  }
  for (std::size_t from = 0; from < size;) {
    const std::size_t sector_left = kSectorBytes - (change.at + from) % kSectorBytes;
    const std::size_t to = std::min(size, from + sector_left);
    if (coin(random)) apply_part(image, change, from, to, clipped);
    from = to;
  }
}

// Moves the first durable changes to the durable image.
void TestFile::fold() {
  auto change = changes_.begin();
  for (; change != changes_.end() && change->durable; ++change) apply(durable_, *change);
  changes_.erase(changes_.begin(), change);
}

}  // namespace tubed::journal
