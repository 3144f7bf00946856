// View: what the user looks at, types and asks for.
//
// It turns keys into changes of the table, and into orders for the server, which it does not send
// itself. An order needs a number and Enter: no single key changes anything on the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tubectl/top/model.h"

namespace tubed::tubectl::top {

struct Key {
  enum class Kind : std::uint8_t {
    character,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    enter,
    escape,
    backspace
  };
  Kind kind = Kind::character;
  char character = '\0';  // for Kind::character
};

// A command for the server.
struct Order {
  enum class Kind : std::uint8_t { pause, kick };
  Kind kind = Kind::pause;
  std::string tube;
  std::uint64_t number = 0;  // seconds, or jobs
};

class View {
 public:
  enum class Page : std::uint8_t { tubes, details, help };
  enum class Question : std::uint8_t { none, filter, pause, kick };

  // Returns true if the user quits.
  bool press(Key key, Model& model);
  // The order given since the last call.
  std::optional<Order> take_order();

  Page page() const { return page_; }
  Question question() const { return question_; }
  // The answer typed so far.
  const std::string& typed() const { return typed_; }
  // The tube of the details.
  const std::string& tube() const { return tube_; }
  // The tube of the question.
  const std::string& asked_tube() const { return asked_tube_; }
  bool frozen() const { return frozen_; }
  // The result of the last key or order; the next key clears it.
  const std::string& message() const { return message_; }
  void show_message(std::string message) { message_ = std::move(message); }

  // Limits the scroll position: the details or the help have `lines` lines, of which `rows` fit.
  void fit(std::size_t lines, std::size_t rows);
  // The number of lines above the visible part.
  std::size_t scrolled() const { return scrolled_; }

 private:
  void press_character(char character, Model& model);
  void scroll(std::ptrdiff_t rows, Model& model);
  void answer(const Key& key, Model& model);
  void answer_number();
  void ask(Question question, const Model& model);
  void sort(bool next, Model& model);
  void show(Page page);
  void go_back();

  Page page_ = Page::tubes;
  Page before_help_ = Page::tubes;
  Question question_ = Question::none;
  std::string typed_;
  std::string tube_;
  std::string asked_tube_;
  bool frozen_ = false;
  std::size_t scrolled_ = 0;
  std::size_t rows_ = 1;
  std::string message_;
  std::optional<Order> order_;
};

}  // namespace tubed::tubectl::top
