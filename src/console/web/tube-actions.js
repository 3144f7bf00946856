// Actions on a whole tube: pause, resume, kick, clear, move. Each asks first, with the numbers of
// the moment.

import { get, path, post } from "./api.js";
import { askForm } from "./dialog.js";
import { duration, number, plural, visible } from "./format.js";
import { go, jobLink } from "./router.js";
import { hold } from "./holds.js";
import { runSteps } from "./tasks.js";
import { toast, toastError } from "./toast.js";

const kStates = ["ready", "reserved", "delayed", "buried"];
const kStepped = 5000;   // more jobs than this are handled in steps, with their progress

function countsOf(stats) {
  const counts = {};
  for (const state of kStates) counts[state] = stats[`current-jobs-${state}`];
  counts.all = kStates.reduce((sum, state) => sum + counts[state], 0);
  return counts;
}

async function withCounts(name, run) {
  try {
    await run(countsOf(await get(path`/tubes/${name}`)));
  } catch (error) {
    toastError(error, visible(name));
  }
}

// One request for few jobs, steps with a progress for many.
async function handle({ name, verb, done, total, step, onDone }) {
  if (total > kStepped) {
    await runSteps({ label: `${verb} ${visible(name)}`, total, bound: kStepped, step, done });
  } else {
    const count = await step(total);
    toast(`${visible(name)}: ${plural(count, "job")} ${done}.`);
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
    const dialog = askForm({ title: `Clear ${visible(name)}`, name: "clear", danger: true,
      action: "Clear",
      text: "The jobs are removed for good, reserved jobs also from the clients that hold them.",
      fields: [{ name: "state", label: "Jobs", value: "all", options: ["all", ...kStates].map(
        (state) => [state, `${label(state)}: ${number(counts[state])}`]) }],
      submit: async ({ state }) => {
        const clear = async (what, signal) =>
          (await post(path`/tubes/${name}/clear`, what, signal)).count;
        const step = state !== "all" ? (bound, signal) => clear({ state, bound }, signal)
          : counts.all <= kStepped ? (bound, signal) => clear({}, signal) : stepOfAll(clear);
        const work = handle({ name, verb: "Clear", done: "removed", total: counts[state], step,
          onDone });
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

// Only the jobs of one state can be removed in steps: first state by state, then what is left.
function stepOfAll(clear) {
  const states = [...kStates];
  return async (bound, signal) => {
    let count = 0;
    while (count < bound && states.length > 0) {
      count += await clear({ state: states[0], bound: bound - count }, signal);
      if (count < bound) states.shift();
    }
    return count < bound ? count + await clear({}, signal) : count;
  };
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
          total: counts[state], step, onDone });
        if (counts[state] <= kStepped) await work;
      } });
  });
}

// Reserves the job that is given next, and shows it.
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
