// The form that puts a job into a tube, once or many times. It keeps its text until the job has been
// put, even while another view or the sign-in form is shown.

import { path, send } from "./api.js";
import { decodeText } from "./body.js";
import { formElement } from "./dialog.js";
import { h, replace, setText } from "./dom.js";
import { number, plural, visible } from "./format.js";
import { refusal } from "./rights.js";
import { jobLink } from "./router.js";
import { store } from "./store.js";
import { runEach } from "./tasks.js";

const kEncoder = new TextEncoder();
const kMost = "4294967295";
const kMostDrafts = 8;

export const kMostEdited = 2 ** 20;   // bytes of a body

const drafts = new Map();   // by the name of the tube: {values, note}, the newest last

function keepDraft(name, draft) {
  drafts.delete(name);
  drafts.set(name, draft);
  if (drafts.size > kMostDrafts) drafts.delete(drafts.keys().next().value);
}

export function forgetDrafts() {
  drafts.clear();
}

// The tags of a job as its put had them.
function tagsOf(job) {
  const words = [["idp", "idempotency-key", "idempotency-ttl"],
    ["con", "concurrency-key", "concurrency-limit"], ["grp", "group"], ["aft", "after-group"],
    ["max", "max-attempts", "dead"], ["ttl", "ttl"]];
  return words.filter(([, key]) => job[key] !== undefined)
    .map(([word, key, more]) => `${word}:${job[key]}${job[more] ? `:${job[more]}` : ""}`).join(" ");
}

// Fills the form of the job's tube from the lines of stats-job and its body, which is undefined if
// it has more than kMostEdited bytes. Throws if the body cannot be edited as text.
export function draftFromJob(job, data) {
  if (!data || data.length > kMostEdited) {
    throw new Error(`A body of more than ${number(kMostEdited)} bytes cannot be edited here.`);
  }
  const text = decodeText(data);
  if (text === null) throw new Error("The body is no text (UTF-8): it cannot be edited here.");
  const lines = text.includes("\r") ? " Its line ends CR LF become LF." : "";
  keepDraft(job.tube, {
    values: { body: text, pri: String(job.pri), ttr: String(job.ttr), tags: tagsOf(job),
      delay: String(job.state === "delayed" ? job.delay : 0) },
    note: `Filled from job ${job.id}, which stays as it is.${lines}` });
}

export class PutPanel {
  constructor(name, onDone) {
    this.name = name;
    this.onDone = onDone;
    const reason = refusal("produce");
    if (reason) {
      this.element = h("p", { class: "notice" }, reason);
      return;
    }
    this.size = h("p", { class: "help", "data-size": "" });
    this.result = h("p", { class: "result", role: "status", "data-result": "" });
    const seconds = { type: "text", pattern: "\\d+(ms)?", required: true };
    const { form, inputs } = formElement({ action: "Put", extra: [this.size, this.result],
      fields: [
        { name: "body", label: "Body", type: "textarea", rows: 10 },
        { name: "pri", label: "Priority", type: "number", min: "0", max: kMost, value: "1024",
          required: true, help: "Smaller is more urgent." },
        { name: "delay", label: "Delay", value: "0", ...seconds,
          help: "Seconds, or milliseconds as 500ms." },
        { name: "ttr", label: "TTR", value: "60", ...seconds,
          help: "How long a worker may keep it." },
        { name: "tags", label: "Tags", placeholder: "idp:order-7 max:3 ttl:300",
          help: "Words with spaces between: idp: con: grp: aft: max: ttl:" },
        { name: "repeat", label: "Repeat", type: "number", min: "1", max: "1000000", value: "1",
          required: true, help: "How many jobs." },
        { name: "numbered", label: "Replace {n} in body and tags by 1, 2, …", type: "checkbox" }],
      submit: (values) => this.#put(values) });
    form.classList.add("put-form");
    this.inputs = inputs;
    this.note = h("p", { class: "help", "data-note": "", role: "status", hidden: true });
    this.#fill(drafts.get(name));
    form.addEventListener("input", () => this.#keep());
    this.#showSize();
    this.element = h("div", { class: "panel" }, this.note, form);
  }

  #fill(draft) {
    if (!draft) return;
    for (const [name, value] of Object.entries(draft.values)) {
      const input = this.inputs[name];
      if (input.type === "checkbox") input.checked = value;
      else input.value = value;
    }
    setText(this.note, draft.note);
    this.note.hidden = draft.note === "";
  }

  #keep() {
    const values = Object.fromEntries(Object.entries(this.inputs).map(([name, input]) =>
      [name, input.type === "checkbox" ? input.checked : input.value]));
    keepDraft(this.name, { values, note: this.note.textContent });
    this.#showSize();
  }

  #showSize() {
    const length = kEncoder.encode(this.inputs.body.value).length;
    const most = store.server?.["max-job-size"];
    setText(this.size, `${plural(length, "byte")}${most ? ` of at most ${number(most)}` : ""}`);
    this.size.classList.toggle("problem", length > most);
  }

  // The limit is known once the stream has started.
  tick() {
    if (this.inputs) this.#showSize();
  }

  async #request(values, index, signal) {
    const { pri, delay, ttr } = values;
    const numbered = (text) => (values.numbered ? text.replaceAll("{n}", index + 1) : text);
    const response = await send("POST", path`/tubes/${this.name}/jobs`, { signal,
      query: { pri, delay, ttr, tags: numbered(values.tags.trim()) },
      body: kEncoder.encode(numbered(values.body)) });
    return response.json();
  }

  async #put(values) {
    const repeat = Number(values.repeat);
    replace(this.result);
    if (repeat > 1) {
      runEach({ label: `Put into ${visible(this.name)}`, items: repeat, done: "put",
        nameOf: (index) => `put ${index + 1}`,
        work: (index, signal) => this.#request(values, index, signal) }).then((succeeded) => {
        if (succeeded === repeat) drafts.delete(this.name);
        this.onDone();
      });
      return;
    }
    const { id, state } = await this.#request(values, 0);
    drafts.delete(this.name);
    setText(this.note, "");
    this.note.hidden = true;
    replace(this.result, state ? "No job was added: its unique key is that of " : "Put as ",
      h("a", { href: jobLink(id) }, `job ${id}`), state ? ` (${state.toLowerCase()}).` : ".");
    this.onDone();
  }
}
