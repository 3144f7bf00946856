// tubectl: the command-line client.
#include "tubectl/command_line.h"

int main(int argc, char** argv) {
  return tubed::tubectl::run(argc, argv);
}
