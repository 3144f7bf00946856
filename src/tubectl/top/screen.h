// Screen: the terminal, through ncurses: draws frames, and reads keys.
//
// It owns the modes of the terminal while it exists, and restores them when it is destroyed. Only
// one may exist at a time. It never blocks.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "tubectl/top/frame.h"
#include "tubectl/top/view.h"

namespace tubed::tubectl::top {

// Movable: a moved-from Screen restores nothing.
class Screen {
 public:
  // Precondition: the locale is set. Fails if ncurses does not know this terminal.
  static Result<Screen> open();
  ~Screen();
  Screen(Screen&&) noexcept;
  Screen& operator=(Screen&&) = delete;

  void draw(const Frame& frame);
  // No value: no key was pressed.
  std::optional<Key> read();

  Size size() const;
  // Called when the size of the window has changed.
  void resize();

 private:
  struct Curses;

  explicit Screen(std::unique_ptr<Curses> curses);

  std::unique_ptr<Curses> curses_;
};

}  // namespace tubed::tubectl::top
