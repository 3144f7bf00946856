# TUBED_PORTABLE makes programs for distributions other than the builder's: fmt, toml++ and ncurses
# become a part of them. The sonames of fmt and toml++ differ between distributions, and the symbols of
# ncurses have versions on Debian and none on Fedora. The sonames of the other libraries are the same
# everywhere.
option(TUBED_PORTABLE "Compile fmt, toml++ and ncurses into the programs" OFF)

# tubed_header_only(target header definition): a target that uses the headers of a library alone.
function(tubed_header_only target header definition)
  find_path(directory ${header} REQUIRED NO_CACHE)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE ${directory})
  target_compile_definitions(${target} INTERFACE ${definition})
endfunction()

set(CURSES_NEED_WIDE TRUE)
find_package(Curses REQUIRED)
if(TUBED_PORTABLE)
  tubed_header_only(fmt::fmt fmt/format.h FMT_HEADER_ONLY=1)
  tubed_header_only(PkgConfig::tomlplusplus toml++/toml.h TOML_HEADER_ONLY=1)
  # It searches for terminals in the directories of Debian, and /usr/share/terminfo of Fedora is among them.
  find_library(ncursesw libncursesw.a REQUIRED NO_CACHE)
  find_library(tinfo libtinfo.a REQUIRED NO_CACHE)
  set(CURSES_LIBRARIES ${ncursesw} ${tinfo})
else()
  find_package(fmt REQUIRED)
  pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
endif()
