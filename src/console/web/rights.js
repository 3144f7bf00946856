// The rights of this user, from GET /access. A button whose action is refused is disabled, and its
// title is the reason.

import { h } from "./dom.js";

let access = { api: "read", verbs: null, tubes: null, role: null, version: "" };

export function setAccess(value) {
  access = value;
}

export function currentAccess() {
  return access;
}

// Why commands of this family are refused; "" if they are allowed. Only `inspect` changes nothing.
export function refusal(verb) {
  if (verb !== "inspect" && access.api !== "full") {
    return "This console is read-only: http.api is \"read\".";
  }
  if (access.verbs && !access.verbs.includes(verb)) {
    return `The role ${access.role ?? "of this connection"} has no "${verb}".`;
  }
  return "";
}

export function may(verb) {
  return refusal(verb) === "";
}

// Settings concern all tubes, so a role that is limited to some tubes does not see them.
export function settingsRefusal() {
  if (access.verbs && !access.verbs.includes("admin")) {
    return `The role ${access.role} has no "admin".`;
  }
  return access.tubes ? `The role ${access.role} has some tubes only.` : "";
}

// A button for an action of a family of commands.
export function actionButton(verb, label, props) {
  const reason = refusal(verb);
  return h("button", { type: "button", ...props, disabled: reason !== "" || props?.disabled,
    title: reason || props?.title }, label);
}
