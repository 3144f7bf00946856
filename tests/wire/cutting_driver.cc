#include "tests/wire/cutting_driver.h"

namespace tubed::wire {

void CuttingDriver::send(Client client, std::string_view bytes) {
  const std::size_t start = sent_;
  sent_ += bytes.size();
  while (!bytes.empty()) {
    std::size_t piece = bytes.size();
    if (!position_) {
      piece = 1;
    } else if (*position_ > start && *position_ < sent_ && bytes.size() == sent_ - start) {
      piece = *position_ - start;
    }
    below_.send(client, bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    // Without this wait, a socket would join the pieces again.
    if (!bytes.empty()) below_.wait_until_idle();
  }
}

}  // namespace tubed::wire
