// The place in a list of jobs that was left for one of its jobs: its address, the loaded rows, and
// the row at the top of the window. Back from the job, the list is shown as it was. One place is
// kept, until another view than a job or the same tube is shown.

let kept = null;

// place: {tube, state, hash, ...}
export function keepPlace(place) {
  kept = place;
}

// Returns the place in the list of this tube and state, and forgets it; null: none is kept.
export function takePlace(tube, state) {
  const found = kept?.tube === tube && kept.state === state ? kept : null;
  kept = null;
  return found;
}

// The address of the list of this tube, if its place is kept.
export function placeIn(tube) {
  return kept?.tube === tube ? kept.hash : "";
}

// The statistics of this tube when its list was left, or null.
export function statsIn(tube) {
  return kept?.tube === tube ? kept.stats : null;
}

// Called for each view that is shown, with its path.
export function passPlace([first, second]) {
  if (first !== "jobs" && !(first === "tubes" && second === kept?.tube)) kept = null;
}

export function forgetPlace() {
  kept = null;
}
