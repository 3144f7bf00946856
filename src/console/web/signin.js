// The form that asks for a token. The token is kept in this tab of the browser (sessionStorage).

import { auth, get } from "./api.js";
import { formElement } from "./dialog.js";
import { h } from "./dom.js";

export function signInElement(onSignedIn) {
  const { form, inputs } = formElement({ action: "Sign in",
    fields: [{ name: "token", label: "Token", type: "password", required: true,
      help: "The server asks for a token of auth.tokens. It is kept in this tab only." }],
    submit: async ({ token }) => {
      if (!/^[!-~]+$/.test(token.trim())) throw new Error("This is not a token.");
      auth.token = token.trim();
      try {
        await get("/access");
      } catch (error) {
        auth.token = "";
        throw error.status === 401 ? new Error("The server does not accept this token.") : error;
      }
      onSignedIn();
    } });
  const element = h("section", { class: "panel signin", "data-signin": "",
    "aria-label": "Sign in" }, form);
  return { element, focus: () => inputs.token.focus() };
}
