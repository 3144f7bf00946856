// Addresses of views: "#/tubes/mail?state=buried" is the path ["tubes", "mail"] and the query
// {state: "buried"}. A change of the query alone keeps the view.

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

// Changes the query of the present view. An empty value takes a key away. Typing replaces the
// entry of the browser's history, a choice such as a tab adds one.
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
