// press() handles a key in one of two modes. While a question is open, answer() edits the typed
// text; Enter completes it and Escape cancels it. Otherwise a key moves the selection, changes the
// page or the order, or opens a question. A filter takes effect with each character; pause and kick
// become an Order only by Enter.
#include "tubectl/top/view.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::tubectl::top {
namespace {

// The largest number of the protocol. [protocol: pause-tube, kick]
constexpr std::uint64_t kLargestNumber = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kLongestTyped = 200;
// More than any number of rows, and too small to overflow.
constexpr std::ptrdiff_t kToTheEnd = std::numeric_limits<std::int32_t>::max();

// Maps letters to the keys whose effect they share.
Key without_synonym(Key key) {
  if (key.kind != Key::Kind::character) return key;
  switch (key.character) {
    case 'k':
      return {Key::Kind::up};
    case 'j':
      return {Key::Kind::down};
    case '<':
      return {Key::Kind::left};
    case '>':
    case 's':
      return {Key::Kind::right};
    default:
      return key;
  }
}

}  // namespace

bool View::press(Key key, Model& model) {
  message_.clear();
  if (question_ != Question::none) {
    answer(key, model);
    return false;
  }
  key = without_synonym(key);
  const auto page = static_cast<std::ptrdiff_t>(page_ == Page::tubes ? model.tubes.page() : rows_);
  switch (key.kind) {
    case Key::Kind::up:
      scroll(-1, model);
      break;
    case Key::Kind::down:
      scroll(1, model);
      break;
    case Key::Kind::page_up:
      scroll(-page, model);
      break;
    case Key::Kind::page_down:
      scroll(page, model);
      break;
    case Key::Kind::home:
      scroll(-kToTheEnd, model);
      break;
    case Key::Kind::end:
      scroll(kToTheEnd, model);
      break;
    case Key::Kind::left:
    case Key::Kind::right:
      if (page_ == Page::tubes) sort(key.kind == Key::Kind::right, model);
      break;
    case Key::Kind::enter:
      if (page_ != Page::tubes) {
        go_back();
      } else if (model.tubes.selected() != nullptr) {
        tube_ = model.tubes.selected()->counts.name;
        show(Page::details);
      }
      break;
    case Key::Kind::escape:
      if (page_ == Page::tubes) model.tubes.filter("");
      go_back();
      break;
    case Key::Kind::backspace:
      break;
    case Key::Kind::character:
      if (key.character == 'q') return true;
      press_character(key.character, model);
  }
  return false;
}

std::optional<Order> View::take_order() {
  return std::exchange(order_, std::nullopt);
}

void View::fit(std::size_t lines, std::size_t rows) {
  rows_ = std::max<std::size_t>(rows, 1);
  scrolled_ = std::min(scrolled_, lines > rows_ ? lines - rows_ : 0);
}

void View::press_character(char character, Model& model) {
  switch (character) {
    case 'r':
      if (page_ == Page::tubes) model.tubes.reverse();
      break;
    case '/':
      if (page_ == Page::tubes) ask(Question::filter, model);
      break;
    case 'p':
      ask(Question::pause, model);
      break;
    case 'K':
      ask(Question::kick, model);
      break;
    case 'h':
    case '?':
      if (page_ == Page::help) {
        go_back();
      } else {
        before_help_ = page_;
        show(Page::help);
      }
      break;
    case ' ':
      frozen_ = !frozen_;
      break;
    default:
      message_ = "h lists the keys";
  }
}

void View::scroll(std::ptrdiff_t rows, Model& model) {
  if (page_ == Page::tubes) {
    model.tubes.move(rows);
  } else if (rows < 0) {
    scrolled_ -= std::min(scrolled_, static_cast<std::size_t>(-rows));
  } else {
    scrolled_ += static_cast<std::size_t>(rows);  // fit() limits it to the end
  }
}

void View::answer(const Key& key, Model& model) {
  const bool filters = question_ == Question::filter;
  switch (key.kind) {
    case Key::Kind::enter:
      if (!filters) answer_number();
      question_ = Question::none;
      return;
    case Key::Kind::escape:
      if (filters) model.tubes.filter("");
      question_ = Question::none;
      return;
    case Key::Kind::backspace:
      if (!typed_.empty()) typed_.pop_back();
      break;
    case Key::Kind::character: {
      const bool digit = key.character >= '0' && key.character <= '9';
      if ((filters || digit) && typed_.size() < kLongestTyped) typed_ += key.character;
      break;
    }
    case Key::Kind::up:
      scroll(-1, model);
      break;
    case Key::Kind::down:
      scroll(1, model);
      break;
    default:
      break;
  }
  if (filters) model.tubes.filter(typed_);
}

void View::answer_number() {
  const bool kicks = question_ == Question::kick;
  std::uint64_t number = kLargestNumber;  // without typed text: all jobs
  if (typed_.empty() && !kicks) {
    message_ = "not paused: no seconds were typed";
    return;
  }
  if (!typed_.empty()) {
    const auto read = parse_number<std::uint64_t>(typed_);
    if (!read || *read > kLargestNumber) {
      message_ = fmt::format("{} is more than a server takes", typed_);
      return;
    }
    number = *read;
  }
  order_ = Order{kicks ? Order::Kind::kick : Order::Kind::pause, asked_tube_, number};
}

void View::ask(Question question, const Model& model) {
  if (question != Question::filter) {
    // The question is about the selected tube, or the tube of the details.
    const TubeRow* const selected = model.tubes.selected();
    if (page_ == Page::help || (page_ == Page::tubes && selected == nullptr)) return;
    asked_tube_ = page_ == Page::details ? tube_ : selected->counts.name;
  }
  question_ = question;
  typed_ = question == Question::filter ? model.tubes.filter() : "";
}

void View::sort(bool next, Model& model) {
  const auto beside = [next](SortKey key) {
    const auto at = static_cast<std::size_t>(key);
    return static_cast<SortKey>((at + (next ? 1 : kSortKeys - 1)) % kSortKeys);
  };
  SortKey other = beside(model.tubes.sorted_by());
  if (other == SortKey::held && !model.tubes.has_held()) other = beside(other);
  model.tubes.sort_by(other);
  message_ = fmt::format("sorted by {}", name_of(other));
}

void View::show(Page page) {
  page_ = page;
  scrolled_ = 0;
}

void View::go_back() {
  show(page_ == Page::help ? before_help_ : Page::tubes);
}

}  // namespace tubed::tubectl::top
