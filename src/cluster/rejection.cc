#include "cluster/rejection.h"

namespace tubed::cluster {

void explain(Message& rejection, const RaftLog& log, Index applicable) {
  if (rejection.rejected < log.first() && log.term_of(applicable) != 0)
    rejection.index = applicable;
  if (rejection.index <= log.stored()) rejection.log_term = log.term_of(rejection.index);
}

bool acknowledges(const Message& rejection, const RaftLog& log, const RaftCore& core) {
  const auto match = core.match(rejection.from);
  return match && rejection.term == core.term() && rejection.log_term != 0 &&
         log.term_of(rejection.index) == rejection.log_term && rejection.index > *match &&
         (log.term_of(*match) == 0 || rejection.rejected <= *match);
}

}  // namespace tubed::cluster
