// The form that puts a job into a tube, once or many times.

import { path, send } from "./api.js";
import { formElement } from "./dialog.js";
import { h, replace, setText } from "./dom.js";
import { number, plural, visible } from "./format.js";
import { refusal } from "./rights.js";
import { jobLink } from "./router.js";
import { store } from "./store.js";
import { runEach } from "./tasks.js";

const kEncoder = new TextEncoder();
const kMost = "4294967295";

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
    inputs.body.addEventListener("input", () => this.#showSize());
    this.#showSize();
    this.element = h("div", { class: "panel" }, form);
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
        work: (index, signal) => this.#request(values, index, signal) }).then(this.onDone);
      return;
    }
    const { id, state } = await this.#request(values, 0);
    replace(this.result, state ? "No job was added: its unique key is that of " : "Put as ",
      h("a", { href: jobLink(id) }, `job ${id}`), state ? ` (${state.toLowerCase()}).` : ".");
    this.onDone();
  }
}
