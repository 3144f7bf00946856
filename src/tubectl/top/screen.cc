// ncurses keeps its state in globals, so only one Screen can exist. draw() writes the whole frame
// into ncurses' copy of the screen, and refresh() sends only the difference to the terminal. Keys
// are read without waiting; the event loop waits for standard input. Without colours the styles
// fall back to bold and dim.
#include "tubectl/top/screen.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tubectl/terminal.h"

// The macros of ncurses include names such as move and erase.
#define NCURSES_NOMACROS
#include <curses.h>

namespace tubed::tubectl::top {
namespace {

// How long the rest of a key's sequence may take after its Escape.
constexpr int kEscapeMilliseconds = 25;
constexpr int kControlL = 'L' - '@';
constexpr int kEscape = 27;
constexpr int kDelete = 127;

// Each colour has the pair of the same number.
attr_t attributes_of(Style style, bool colours) {
  const auto pair = [colours](int colour, attr_t otherwise) {
    return colours ? static_cast<attr_t>(COLOR_PAIR(colour)) : otherwise;
  };
  switch (style) {
    case Style::plain:
      return A_NORMAL;
    case Style::bold:
      return A_BOLD;
    case Style::dim:
      return A_DIM;
    case Style::red:
      return pair(COLOR_RED, A_BOLD);
    case Style::green:
      return pair(COLOR_GREEN, A_NORMAL);
    case Style::yellow:
      return pair(COLOR_YELLOW, A_BOLD);
    case Style::cyan:
      return pair(COLOR_CYAN, A_NORMAL);
  }
  return A_NORMAL;
}

std::optional<Key> key_of(int code) {
  switch (code) {
    case KEY_UP:
      return Key{Key::Kind::up};
    case KEY_DOWN:
      return Key{Key::Kind::down};
    case KEY_LEFT:
      return Key{Key::Kind::left};
    case KEY_RIGHT:
      return Key{Key::Kind::right};
    case KEY_PPAGE:
      return Key{Key::Kind::page_up};
    case KEY_NPAGE:
      return Key{Key::Kind::page_down};
    case KEY_HOME:
      return Key{Key::Kind::home};
    case KEY_END:
      return Key{Key::Kind::end};
    case KEY_ENTER:
    case '\n':
    case '\r':
      return Key{Key::Kind::enter};
    case kEscape:
      return Key{Key::Kind::escape};
    case KEY_BACKSPACE:
    case '\b':
    case kDelete:
      return Key{Key::Kind::backspace};
    default:
      if (code < ' ' || code > '~') return std::nullopt;
      return Key{Key::Kind::character, static_cast<char>(code)};
  }
}

}  // namespace

struct Screen::Curses {
  SCREEN* screen = nullptr;
  bool colours = false;

  explicit Curses(SCREEN* opened) : screen(opened) {}
  ~Curses() {
    ::endwin();
    ::delscreen(screen);
  }
  Curses(const Curses&) = delete;
  Curses& operator=(const Curses&) = delete;
};

Screen::Screen(std::unique_ptr<Curses> curses) : curses_(std::move(curses)) {}
Screen::Screen(Screen&&) noexcept = default;
Screen::~Screen() = default;

Result<Screen> Screen::open() {
  // The size of the window has precedence over COLUMNS and LINES.
  ::use_tioctl(TRUE);
  SCREEN* const opened = ::newterm(nullptr, stdout, stdin);
  if (opened == nullptr) {
    const char* const name = std::getenv("TERM");
    return Error{
        fmt::format("top does not know the terminal \"{}\" (TERM)", name == nullptr ? "" : name)};
  }
  auto curses = std::make_unique<Curses>(opened);
  ::set_term(opened);
  ::set_escdelay(kEscapeMilliseconds);
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::leaveok(stdscr, FALSE);
  curses->colours = !colours_unwanted() && ::has_colors() && ::start_color() == OK;
  if (curses->colours) {
    const int background = ::use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (const int colour : {COLOR_RED, COLOR_GREEN, COLOR_YELLOW, COLOR_CYAN}) {
      ::init_extended_pair(colour, colour, background);
    }
  }
  return Screen(std::move(curses));
}

void Screen::draw(const Frame& frame) {
  ::erase();
  int row = 0;
  for (const Line& line : frame.lines) {
    ::move(row++, 0);
    for (const Span& span : line.spans()) {
      const attr_t own = attributes_of(span.style, curses_->colours);
      ::attrset(static_cast<int>(span.reversed ? own | A_REVERSE : own));
      ::addstr(span.text.c_str());
    }
  }
  ::attrset(A_NORMAL);
  ::curs_set(frame.cursor ? 1 : 0);
  if (frame.cursor) ::move(row - 1, static_cast<int>(*frame.cursor));
  ::refresh();
}

std::optional<Key> Screen::read() {
  for (;;) {
    const int code = ::getch();
    if (code == ERR) return std::nullopt;
    if (code == kControlL) {
      ::clearok(curscr, TRUE);
      continue;
    }
    if (const auto key = key_of(code)) return key;
  }
}

Size Screen::size() const {
  return {static_cast<std::size_t>(getmaxx(stdscr)), static_cast<std::size_t>(getmaxy(stdscr))};
}

void Screen::resize() {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return;
  if (window.ws_row > 0 && window.ws_col > 0) ::resizeterm(window.ws_row, window.ws_col);
}

}  // namespace tubed::tubectl::top
