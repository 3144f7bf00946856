// Actions on a whole tube: pause, resume, kick, clear, move. Each asks first and shows the current
// numbers. These numbers bound the requests: jobs that are put between the question and the answer
// stay.

import { ApiError, get, isBusy, path, post } from "./api.js";
import { askForm } from "./dialog.js";
import { duration, number, plural, visible } from "./format.js";
import { go, jobLink } from "./router.js";
import { hold } from "./holds.js";
import { runSteps } from "./tasks.js";
import { toast, toastError } from "./toast.js";

const kStates = ["ready", "reserved", "delayed", "buried", "held"];
const kStepped = 5000;   // a larger number of jobs is handled in steps, with a progress
const kPage = 1000;      // jobs per page of a list, at most

// The numbers of the server, except that `delayed` does not include jobs that a group holds, which
// no command on delayed jobs affects.
function countsOf(stats) {
  const counts = {};
  for (const state of kStates) counts[state] = stats[`current-jobs-${state}`] ?? 0;
  counts.delayed -= counts.held;
  counts.all = kStates.reduce((sum, state) => sum + counts[state], 0);
  return counts;
}

// Returns a sentence about the jobs in this state that an action with a bound has left, or "".
async function leftOver(name, state) {
  let counts;
  try {
    counts = countsOf(await get(path`/tubes/${name}`));
  } catch (error) {
    return error instanceof ApiError && error.status === 404 ? ""  // the tube was emptied
      : " How many jobs are left could not be read.";
  }
  const left = counts[state];
  return left === 0 ? "" : ` ${plural(left, "job")} that came or changed meanwhile ${
    left === 1 ? "stays" : "stay"}.`;
}

async function withCounts(name, run) {
  try {
    await run(countsOf(await get(path`/tubes/${name}`)));
  } catch (error) {
    toastError(error, visible(name));
  }
}

// Few jobs are handled in one step, many in several with a progress. `rest` resolves with a
// sentence to add to the result.
async function handle({ name, verb, done, total, step, rest = async () => "", onDone }) {
  if (total > kStepped) {
    await runSteps({ label: `${verb} ${visible(name)}`, total, bound: kStepped, step, done, rest });
  } else {
    const count = await step(total);
    toast(`${visible(name)}: ${plural(count, "job")} ${done}.${await rest()}`);
  }
  onDone?.();
}

export function pauseTube(name, onDone) {
  askForm({ title: `Pause ${visible(name)}`, name: "pause", action: "Pause",
    text: "No worker gets a job of the tube until the pause ends. Puts still work.",
    fields: [{ name: "delay", label: "Seconds", type: "number", min: "1", max: "4294967295",
      value: "300", required: true }],
    submit: async ({ delay }) => {
      await post(path`/tubes/${name}/pause`, { delay: Number(delay) });
      toast(`${visible(name)} is paused for ${duration(Number(delay))}.`);
      onDone?.();
    } });
}

export async function resumeTube(name, onDone) {
  try {
    await post(path`/tubes/${name}/pause`, { delay: 0 });
    toast(`The pause of ${visible(name)} has ended.`);
    onDone?.();
  } catch (error) {
    toastError(error, visible(name));
  }
}

export function kickTube(name, onDone) {
  withCounts(name, ({ buried, delayed }) => {
    const state = buried > 0 || delayed === 0 ? "buried" : "delayed";
    askForm({ title: `Kick ${visible(name)}`, name: "kick", action: "Kick",
      text: "Kicked jobs become ready, in the order in which they were buried or end their delay.",
      fields: [
        { name: "state", label: "Jobs", value: state, options: [
          ["buried", `buried (${number(buried)})`], ["delayed", `delayed (${number(delayed)})`]] },
        { name: "bound", label: "At most", type: "number", min: "1", max: "4294967295",
          required: true, value: String(Math.max(1, state === "buried" ? buried : delayed)) }],
      submit: async (values) => {
        const total = Number(values.bound);
        const step = async (bound, signal) => (await post(path`/tubes/${name}/kick`,
          { bound, state: values.state }, signal)).count;
        const present = values.state === "buried" ? buried : delayed;
        const most = Math.min(total, Math.max(present, kStepped));
        const work = handle({ name, verb: "Kick", done: "kicked", step, onDone, total: most });
        if (most <= kStepped) await work;
      } });
  });
}

export function clearTube(name, onDone) {
  withCounts(name, (counts) => {
    const label = (state) => (state === "all" ? "in all states" : state);
    const states = ["all", ...kStates.filter((state) => state !== "held" || counts.held > 0)];
    // The numbers still to be removed: a second attempt continues the first.
    const left = { ...counts };
    const dialog = askForm({ title: `Clear ${visible(name)}`, name: "clear", danger: true,
      action: "Clear",
      text: "The jobs are removed for good, reserved jobs also from the clients that hold them. "
        + "Jobs that are put meanwhile stay.",
      fields: [{ name: "state", label: "Jobs", value: "all", options: states.map(
        (state) => [state, `${label(state)}: ${number(counts[state])}`]) }],
      submit: async ({ state }) => {
        const work = handle({ name, verb: "Clear", done: "removed", total: counts[state],
          step: stepOfClear(name, left, state === "all" ? kClearOrder : [state]),
          rest: () => leftOver(name, state), onDone });
        if (counts[state] <= kStepped) await work;
      } });
    const select = dialog.querySelector("select");
    const button = dialog.querySelector("[data-action=submit]");
    const nameCount = () => {
      const state = select.value;
      button.textContent = `Remove ${plural(counts[state], state === "all" ? "job"
        : `${state} job`)} of ${visible(name)}`;
      button.disabled = counts[state] === 0;
    };
    select.addEventListener("change", nameCount);
    nameCount();
    dialog.querySelector("[data-action=cancel]").focus();
  });
}

// Held jobs come first, because removing the members of their group would make them ready.
const kClearOrder = ["held", "delayed", "ready", "buried", "reserved"];

// Returns step(bound, signal), which removes at most `bound` jobs in these states and resolves with
// their number; all steps together remove at most left[state] in each state. Jobs that were removed
// before a request failed are included in the next number.
function stepOfClear(name, left, states) {
  const rest = states.filter((state) => left[state] > 0);
  let removed = 0;
  // A request whose answer is lost may have removed its jobs, so they count as removed.
  const remove = async (state, most, request) => {
    left[state] -= most;
    try {
      const count = await request();
      removed += count;
      left[state] += most - count;
      return count;
    } catch (error) {
      if (error instanceof ApiError && (error.status < 500 || isBusy(error))) left[state] += most;
      throw error;
    }
  };
  return async (bound, signal) => {
    while (removed < bound && rest.length > 0) {
      const [state] = rest;
      const most = Math.min(bound - removed, left[state]);
      const more = state === "held" ? await removeHeld(name, most, remove, signal)
        : await remove(state, most, async () => (await post(path`/tubes/${name}/clear`,
          { state, bound: most }, signal)).count) === most;
      if (!more || left[state] === 0) rest.shift();
    }
    const count = removed;
    removed = 0;
    return count;
  };
}

// Removes the held jobs with the lowest ids, at most `most`; returns false if fewer exist. Removes
// the newest of them first, because a held job may be a member of the group for which a newer job
// waits.
async function removeHeld(name, most, remove, signal) {
  const ids = [];
  for (let from = 0; ids.length < most;) {
    const page = await get(path`/tubes/${name}/jobs`,
      { state: "held", from, limit: Math.min(kPage, most - ids.length) }, signal);
    ids.push(...page.jobs.map(({ id }) => id));
    if (page.next === 0) break;
    from = page.next;
  }
  for (const id of [...ids].reverse()) {
    try {
      await remove("held", 1, async () => {
        await post(path`/jobs/${id}/delete-force`, {}, signal);
        return 1;
      });
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;  // 404: it has ended
    }
  }
  return ids.length === most;
}

export function moveTube(name, onDone) {
  withCounts(name, (counts) => {
    askForm({ title: `Move jobs of ${visible(name)}`, name: "move-all", action: "Move",
      fields: [
        { name: "state", label: "Jobs", value: counts.buried > 0 ? "buried" : "ready",
          options: ["ready", "delayed", "buried"].map((state) =>
            [state, `${state}: ${number(counts[state])}`]) },
        { name: "to", label: "To the tube", required: true, maxlength: "200" }],
      submit: async ({ state, to }) => {
        const step = async (bound, signal) => (await post(path`/tubes/${name}/move`,
          { state, to, bound }, signal)).count;
        const work = handle({ name, verb: "Move", done: `moved to ${visible(to)}`,
          total: counts[state], step, rest: () => leftOver(name, state), onDone });
        if (counts[state] <= kStepped) await work;
      } });
  });
}

// Reserves the next job and shows it.
export async function reserveNext(name) {
  try {
    const reservation = await post(path`/tubes/${name}/reserve`, { timeout: 0 });
    if (reservation === null) {
      toast(`${visible(name)} has no job to reserve now.`, "info");
      return;
    }
    hold(reservation);
    go(jobLink(reservation.id));
  } catch (error) {
    toastError(error, visible(name));
  }
}
