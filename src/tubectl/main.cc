// tubectl: the command-line client.
#include "tubectl/command_line.h"

int main(int argc, char** argv) {
  tubed::tubectl::occupy_standard_descriptors();
  return tubed::tubectl::run(argc, argv);
}
