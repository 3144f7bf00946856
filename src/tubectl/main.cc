// tubectl: the command-line client.
#include "os/startup.h"
#include "tubectl/command_line.h"

int main(int argc, char** argv) {
  tubed::os::clean_start();
  return tubed::tubectl::run(argc, argv);
}
