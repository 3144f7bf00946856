#include "serving/held_connections.h"

#include <array>
#include <utility>

#include "base/overloaded.h"
#include "base/planted.h"

namespace tubed::serving {

namespace {

// A close with unread input resets the connection, and the client could lose the line with the
// reason for the refusal.
void drop_input(HeldConnections::Connection& connection) {
  std::array<char, 4096> unread;
  std::visit(Overloaded{[&](os::Socket& socket) { os::read_into(socket, std::span<char>(unread)); },
                        [&](std::unique_ptr<loop::Channel>& channel) {
                          channel->read(std::span<char>(unread));
                        }},
             connection);
}

}  // namespace

void HeldConnections::hold(Connection connection, Time now) {
  if (TUBED_PLANTED(refused_not_held)) return;
  // The owner to which a channel reports may be destroyed.
  if (auto* channel = std::get_if<std::unique_ptr<loop::Channel>>(&connection)) (*channel)->pause();
  held_.push_back({std::move(connection), now + kTime});
  if (held_.size() > kMost) close_oldest();
}

void HeldConnections::close_due(Time now) {
  while (!held_.empty() && held_.front().due <= now) close_oldest();
}

void HeldConnections::close_all() {
  while (!held_.empty()) close_oldest();
}

void HeldConnections::close_oldest() {
  drop_input(held_.front().connection);
  held_.pop_front();
}

}  // namespace tubed::serving
