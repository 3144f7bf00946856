# Sourced by tools/test and packaging/tests/run: runs logged and counted steps, in lanes that run in
# parallel. The caller sets `work` to its own directory, and calls steps_begin first.

# steps_begin: creates the files that the lanes share.
steps_begin() {
  state=$work/state
  mkdir -p "$state"
  : >"$state/verdicts"
  : >"$state/skipped"
  lanes=()
  trap steps_cleanup EXIT
  trap 'exit 143' INT TERM
}

# Ends the lanes with all their processes, then calls the caller's `cleanup`.
steps_cleanup() {
  local lane
  for lane in "${lanes[@]}"; do kill -TERM -- "-$lane" 2>/dev/null || true; done
  wait
  cleanup
}

# count_step LOG STATUS: counts the tests of a step from its closing line. A step without such a
# line counts as one test.
count_step() {
  local log=$1 status=$2 closing passed failed
  closing=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+|^[0-9]+ passed, [0-9]+ failed' \
    "$log" | tail -n 1)
  if [[ $closing =~ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
    # ctest counts skipped tests as passed.
    failed=${BASH_REMATCH[1]}
    passed=$((BASH_REMATCH[2] - failed - $(grep -cE ' \(Skipped\)$' "$log")))
  elif [[ $closing =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
    passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]}
  else
    passed=0 failed=0
    case $status in
      0) passed=1 ;;
      77) ;;
      *) failed=1 ;;
    esac
  fi
  # A step that failed without a failed test still counts as failed.
  if ((status != 0 && status != 77 && failed == 0)); then failed=1; fi
  printf '%d %d\n' "$passed" "$failed"
}

# step HEADING COMMAND…: prints the output in one piece, because other steps may run at the same
# time. A command that exits with 77 is skipped. A failure ends the lane. Bash ignores set -e in a
# function that is called here: join its commands with &&.
step() {
  local title=$1 begin=$SECONDS status=0 verdict log
  shift
  log=$(mktemp -p "$state")
  "$@" >"$log" 2>&1 || status=$?
  case $status in
    0) verdict=passed ;;
    77) verdict=skipped ;;
    *) verdict=FAILED ;;
  esac
  (
    flock 9
    printf '\n== %s\n' "$title"
    cat "$log"
    printf -- '-- %s: %s, %d s\n' "$title" "$verdict" "$((SECONDS - begin))"
    printf '%s %s %s\n' "$(count_step "$log" "$status")" "$verdict" "$title" >>"$state/verdicts"
    sed -nE -e "s/.*skipped: (.*)/\1 ($title)/p" \
      -e "s/^[[:space:]]*[0-9]+ - (.*) \(Skipped\)$/\1 ($title)/p" "$log" >>"$state/skipped"
  ) 9>"$state/lock"
  if [[ $verdict == FAILED ]]; then exit 1; fi
}

# announce NAME: sets an event. wait_for NAME returns once the event is set, also later.
announce() {
  : >"$state/there-$1"
}
wait_for() {
  until [[ -e $state/there-$1 ]]; do read -r -t 0.5 <> <(:) || true; done
}

# run_lanes FUNCTION…: runs each function in its own process group. When a function fails, ends all
# processes of the others.
run_lanes() {
  local function status=0
  set -m
  for function in "$@"; do
    "$function" &
    lanes+=($!)
  done
  set +m
  for function in "$@"; do
    wait -n || status=$?
    if ((status != 0)); then return "$status"; fi
  done
}

# steps_end NAME STATUS: prints the closing line and exits.
steps_end() {
  local name=$1 status=$2
  echo
  sort -u "$state/skipped" | sed 's/^/not run: /'
  if ((status != 0)); then
    printf '%s: FAILED: %s\n' "$name" \
      "$(sed -n 's/^[0-9]* [0-9]* FAILED //p' "$state/verdicts" | paste -sd ';')" >&2
  fi
  printf '%s: %d s\n' "$name" "$SECONDS"
  awk '{ passed += $1; failed += $2 } END { printf "%d passed, %d failed\n", passed, failed }' \
    "$state/verdicts"
  exit "$((status != 0))"
}
