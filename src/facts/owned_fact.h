// OwnedFact: a copy of a fact that owns its texts.
#pragma once

#include <string>

#include "facts/fact.h"

namespace tubed {

class OwnedFact {
 public:
  explicit OwnedFact(const Fact& fact) : fact_(fact) {
    for_each_text(fact_, [this](std::string_view& text) { texts_ += text; });
  }

  // Its texts are valid as long as this object stays where it is.
  Fact fact() const {
    Fact fact = fact_;
    std::string_view rest = texts_;
    for_each_text(fact, [&rest](std::string_view& text) {
      text = rest.substr(0, text.size());
      rest.remove_prefix(text.size());
    });
    return fact;
  }

 private:
  // Calls visit(std::string_view&) for each text of the fact, in an order that is always the same.
  template <class Visit>
  static void for_each_text(Fact& fact, Visit visit) {
    struct {
      void operator()(Added& added) { visit(added.tube); }
      void operator()(Placed& /*placed*/) {}
      void operator()(Removed& /*removed*/) {}
      void operator()(Paused& paused) { visit(paused.tube); }
      void operator()(Flushed& flushed) { visit(flushed.tube); }
      void operator()(AddedWithTags& added) {
        visit(added.tube);
        visit(added.tags.unique_key);
        visit(added.tags.dead);
        visit(added.tags.concurrency_key);
        visit(added.tags.group);
        visit(added.tags.after);
        visit(added.marks.dead_from);
      }
      void operator()(PlacedWithMarks& placed) { visit(placed.marks.dead_from); }
      void operator()(PolicySet& policy) {
        visit(policy.tube);
        visit(policy.key);
        visit(policy.value);
      }
      void operator()(Remembered& remembered) {
        visit(remembered.tube);
        visit(remembered.key);
      }
      void operator()(Moved& moved) { visit(moved.tube); }
      void operator()(Held& /*held*/) {}
      void operator()(Applied& /*applied*/) {}
      Visit& visit;
    } each{visit};
    std::visit(each, fact);
  }

  std::string texts_;
  Fact fact_;
};

}  // namespace tubed
