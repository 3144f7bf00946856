// Addresses of views: "#/tubes/mail?state=buried" is the path ["tubes", "mail"] and the query
// {state: "buried"}. A change of only the query keeps the view.

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parse(hash = location.hash) {
  const text = hash.replace(/^#\/?/, "");
  const question = text.indexOf("?");
  const path = question < 0 ? text : text.slice(0, question);
  const query = question < 0 ? "" : text.slice(question + 1);
  return {
    path: path.split("/").filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

export function link(path, query) {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") parameters.set(key, value);
  }
  const text = parameters.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const tubeLink = (name, query) => link(["tubes", name], query);
export const jobLink = (id) => link(["jobs", String(id)]);

export function go(target) {
  location.hash = target;
}

// Changes the query of the current view. An empty value removes its key. Without `push` the current
// entry of the browser's history is replaced, as for typing; a choice such as a tab adds an entry.
export function setQuery(changes, { push = false } = {}) {
  const { path, query } = parse();
  const target = link(path, { ...query, ...changes });
  if (target === location.hash) return;
  if (push) {
    location.hash = target;
  } else {
    history.replaceState(null, "", target);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}
