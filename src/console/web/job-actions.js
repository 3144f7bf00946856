// Actions on one job, or on all selected jobs.

import { del, path, post } from "./api.js";
import { askForm, confirmAction } from "./dialog.js";
import { plural, visible } from "./format.js";
import { runEach } from "./tasks.js";
import { toast } from "./toast.js";

const nameOf = (id) => `job ${id}`;

function subject(ids) {
  return ids.length === 1 ? `job ${ids[0]}` : plural(ids.length, "job");
}

// Sends a single request, whose error is shown in the dialog, or runs a task for several jobs.
async function run(ids, { verb, done, work, onDone }) {
  if (ids.length === 1) {
    await work(ids[0]);
    toast(`Job ${ids[0]}: ${done}.`);
    onDone?.();
    return;
  }
  runEach({ label: `${verb} ${subject(ids)}`, items: ids, work, nameOf, done }).then(onDone);
}

export function kickJobs(ids, onDone) {
  return run(ids, { verb: "Kick", done: "kicked", onDone,
    work: (id, signal) => post(path`/jobs/${id}/kick`, {}, signal) });
}

export function deleteJobs(ids, onDone) {
  confirmAction({ title: `Delete ${subject(ids)}`, name: "delete", action: `Delete ${subject(ids)}`,
    text: "A deleted job cannot be brought back.",
    run: () => run(ids, { verb: "Delete", done: "deleted", onDone,
      work: (id, signal) => del(path`/jobs/${id}`, signal) }) });
}

export function forceDeleteJob(id, onDone) {
  confirmAction({ title: `Delete the reserved job ${id}`, name: "delete-force",
    action: `Delete job ${id}`,
    text: "A client holds this job and may be working on it. Its next command on the job is "
      + "answered NOT_FOUND. A deleted job cannot be brought back.",
    run: () => run([id], { done: "deleted", onDone,
      work: () => post(path`/jobs/${id}/delete-force`, {}) }) });
}

export function moveJobs(ids, onDone) {
  askForm({ title: `Move ${subject(ids)}`, name: "move", action: "Move",
    text: "A moved job keeps its state, priority and delay.",
    fields: [{ name: "tube", label: "To the tube", required: true, maxlength: "200" }],
    submit: ({ tube }) => run(ids, { verb: "Move", done: `moved to ${visible(tube)}`, onDone,
      work: (id, signal) => post(path`/jobs/${id}/move`, { tube }, signal) }) });
}

export function reprioritizeJobs(ids, onDone, pri = 1024) {
  askForm({ title: `Re-prioritize ${subject(ids)}`, name: "reprioritize",
    action: "Set the priority",
    text: "Smaller is more urgent. A job that a client holds keeps its priority.",
    fields: [{ name: "pri", label: "Priority", type: "number", min: "0", max: "4294967295",
      value: String(pri), required: true }],
    submit: (values) => run(ids, { verb: "Re-prioritize", done: "re-prioritized", onDone,
      work: (id, signal) => post(path`/jobs/${id}/reprioritize`, { pri: Number(values.pri) },
        signal) }) });
}
