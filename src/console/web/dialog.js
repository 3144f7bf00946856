// Dialogs: a question with one answer, a form, or any content. Each is a modal <dialog>; Esc closes
// it, and the focus returns to the previous element.

import { h, iconButton } from "./dom.js";
import { detailOf } from "./api.js";
import { serverElement } from "./identity.js";

let count = 0;

export function openDialog({ title, content, name, wide = false, onClose }) {
  const id = `dialog-${++count}`;
  const dialog = h("dialog", { class: wide ? "dialog wide" : "dialog", "aria-labelledby": id,
    "data-dialog": name });
  const close = () => dialog.close();
  dialog.append(h("header", { class: "dialog-head" }, h("h2", { id }, title),
    iconButton("close", "Close", { onclick: close })), content);
  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose?.();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// fields: {name, label, type = "text", value, help, required, min, max, pattern, options, rows,
//          list}
function fieldElement(field) {
  const shared = { id: `field-${++count}`, name: field.name, required: field.required,
    "aria-describedby": field.help ? `field-${count}-help` : null };
  let input;
  if (field.options) {
    input = h("select", shared, field.options.map(([value, label]) =>
      h("option", { value, selected: value === field.value }, label)));
  } else if (field.type === "textarea") {
    input = h("textarea", { ...shared, rows: field.rows ?? 8, spellcheck: "false" });
    input.value = field.value ?? "";
  } else {
    input = h("input", { ...shared, type: field.type ?? "text", min: field.min, max: field.max,
      step: field.step, pattern: field.pattern, autocomplete: "off", spellcheck: "false",
      maxlength: field.maxlength, placeholder: field.placeholder, list: field.list });
    if (field.type === "checkbox") input.checked = Boolean(field.value);
    else input.value = field.value ?? "";
  }
  const label = h("label", { for: shared.id }, field.label);
  const help = field.help ? h("p", { class: "help", id: `${shared.id}-help` }, field.help) : null;
  const box = field.type === "checkbox";
  return { input, element: h("div", { class: box ? "field field-check" : "field" },
    box ? [input, label, help] : [label, input, help]) };
}

// A form of fields, in a dialog or on a page. If `submit(values)` throws, the message is shown.
export function formElement({ fields, action, danger, submit, extra, onCancel }) {
  const elements = fields.map(fieldElement);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = h("button", { type: "submit", class: danger ? "danger" : "primary",
    "data-action": "submit" }, action);
  const buttons = h("div", { class: "buttons" },
    onCancel && h("button", { type: "button", onclick: onCancel, "data-action": "cancel" },
      "Cancel"), button);
  const form = h("form", { class: "form" }, elements.map(({ element }) => element), extra, problem,
    buttons);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const values = {};
    for (const { input } of elements) {
      values[input.name] = input.type === "checkbox" ? input.checked : input.value;
    }
    button.disabled = true;
    problem.hidden = true;
    try {
      await submit(values);
    } catch (error) {
      problem.textContent = detailOf(error);
      problem.hidden = false;
    } finally {
      button.disabled = false;
    }
  });
  const inputs = Object.fromEntries(elements.map(({ input }) => [input.name, input]));
  return { form, inputs, button };
}

// A form that acts on the server, whose name it shows.
export function askForm({ title, text, name, submit, ...rest }) {
  let dialog;
  const { form, inputs } = formElement({ ...rest,
    onCancel: () => dialog.close(),
    submit: async (values) => {
      await submit(values);
      dialog.close();
    } });
  dialog = openDialog({ title, name,
    content: h("div", { class: "dialog-body" }, text && h("p", null, text),
      h("p", { class: "dialog-server" }, "On ", serverElement()), form) });
  Object.values(inputs)[0]?.focus();
  return dialog;
}

// A question with an action as its only answer besides Cancel, which has the focus.
export function confirmAction({ title, text, action, danger = true, name = "confirm", run }) {
  askForm({ title, text, action, danger, name, fields: [], submit: run })
    .querySelector("[data-action=cancel]").focus();
}
