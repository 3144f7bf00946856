// Requests to the HTTP API. A failure is an ApiError with the detail of the problem document. The
// token of the sign-in form is kept in sessionStorage only.

import { kStorage } from "./storage.js";

// Relative to the page, which a proxy may serve below a path.
const kBase = new URL("api/v1", document.baseURI).pathname;
const kTokenKey = `${kStorage}token`;

// The detail of a problem document, with the name of the wrong parameter.
function textOf({ detail, title, parameter }) {
  const text = detail || title || "";
  return parameter && !text.includes(parameter) ? `${parameter}: ${text}` : text;
}

export class ApiError extends Error {
  constructor(status, problem) {
    super(textOf(problem) || `The server answered ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.reply = problem.reply ?? "";
    this.type = problem.type ?? "";
  }
}

export const auth = {
  get token() {
    return sessionStorage.getItem(kTokenKey) ?? "";
  },
  set token(value) {
    if (value) sessionStorage.setItem(kTokenKey, value);
    else sessionStorage.removeItem(kTokenKey);
  },
  // Called after each answer 401. main.js shows the sign-in form.
  onUnauthorized: () => {},
};

// path`/tubes/${name}/jobs`: the values are percent-encoded. Browsers resolve the segments "." and
// "..", however they are encoded, and would address something else.
export function path(strings, ...values) {
  if (values.some((value) => value === "." || value === "..")) {
    throw new Error("A tube with this name has no address: use tubectl or the protocol.");
  }
  return String.raw({ raw: strings }, ...values.map(encodeURIComponent));
}

function url(target, query) {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") parameters.set(key, value);
  }
  const text = parameters.toString();
  return kBase + target + (text ? `?${text}` : "");
}

export async function send(method, target, { query, json, body, accept, signal } = {}) {
  const headers = new Headers({ Accept: accept ?? "application/json" });
  if (auth.token) headers.set("Authorization", `Bearer ${auth.token}`);
  if (method !== "GET") headers.set("X-Requested-By", "console");
  if (json) headers.set("Content-Type", "application/json");
  const response = await fetch(url(target, query), {
    method, headers, signal, body: json ? JSON.stringify(json) : body, cache: "no-store",
    credentials: "same-origin",
  });
  if (response.ok) return response;
  const error = new ApiError(response.status, await problemOf(response));
  if (response.status === 401) auth.onUnauthorized();
  throw error;
}

async function problemOf(response) {
  try {
    const problem = await response.json();
    return problem && typeof problem === "object" ? problem : {};
  } catch {
    return { title: response.statusText };
  }
}

async function answer(response) {
  return response.status === 204 ? null : response.json();
}

export const get = async (target, query, signal) =>
  answer(await send("GET", target, { query, signal }));
export const post = async (target, json, signal) =>
  answer(await send("POST", target, { json: json ?? {}, signal }));
export const put = async (target, json, signal) =>
  answer(await send("PUT", target, { json, signal }));
export const del = async (target, signal) => answer(await send("DELETE", target, { signal }));

// The body of a job: {size, data}, without data if it is larger than `most`.
export async function jobBody(id, signal, most = Infinity) {
  const response = await send("GET", path`/jobs/${id}/body`,
    { accept: "application/octet-stream", signal });
  const size = Number(response.headers.get("Content-Length"));
  if (size > most) {
    await response.body.cancel();
    return { size };
  }
  const data = new Uint8Array(await response.arrayBuffer());
  return { size: data.length, data };
}

// The server refuses too many requests at once with 503; such a request may be sent again.
export function isBusy(error) {
  return error instanceof ApiError && error.status === 503 && error.reply !== "DRAINING"
    && error.type !== "urn:tubed:problem:not-the-leader";
}

// The text to show for any error.
export function detailOf(error) {
  if (error instanceof ApiError) return error.message;
  if (error instanceof TypeError) return "The server cannot be reached.";
  return error?.message || String(error);
}
