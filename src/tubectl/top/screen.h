// Screen: the terminal, through ncurses: draws frames, and reads keys.
//
// It owns the terminal's modes while it is there, and gives them back when it goes. Only one may be
// there at a time. It waits for nothing.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "tubectl/top/frame.h"
#include "tubectl/top/view.h"

namespace tubed::tubectl::top {

// Movable: a Screen that was moved from restores nothing.
class Screen {
 public:
  // Precondition: the locale is set. An Error: ncurses does not know this terminal.
  static Result<Screen> open();
  ~Screen();
  Screen(Screen&&) noexcept;
  Screen& operator=(Screen&&) = delete;

  void draw(const Frame& frame);
  // Nothing: none was pressed.
  std::optional<Key> read();

  Size size() const;
  // The window has another size now.
  void resize();

 private:
  struct Curses;

  explicit Screen(std::unique_ptr<Curses> curses);

  std::unique_ptr<Curses> curses_;
};

}  // namespace tubed::tubectl::top
