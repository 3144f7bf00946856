// The library of the console's tests: a browser whose pages report everything that must not happen,
// a client of the queue's protocol, requests to the API, and a list of tests that run in sequence.
//
// Nothing here waits for a fixed time: until() and the methods of Playwright poll, and fail after a
// bound.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";

export const { npm, directory, failures, control, queue, tokens, title: serverTitle, urls,
  facts } =
  JSON.parse(process.env.TUBED_CONSOLE);

const require = createRequire(join(npm, "package.json"));
const { chromium } = require("playwright-core");
const kAxe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// The last resort against a hang.
export const kSeconds = 600;
const kArguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const { values: options, positionals } = parseArgs({ allowPositionals: true,
  options: { only: { type: "string" }, out: { type: "string" }, slow: { type: "boolean" } } });

// --- waiting, and asking the server

// Returns the first true result of `condition`, which may throw until then.
export async function until(what, condition, seconds = kSeconds) {
  const end = performance.now() + seconds * 1000;
  for (let last; ;) {
    try {
      const result = await condition();
      if (result) return result;
      last = result;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) throw new Error(`waited ${seconds} s for: ${what} (last: ${last})`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// Repeats `check` until none of its assertions fails. A page shows the server's state when its answers are there and
// it has drawn them, so each assertion about what a page shows is repeated.
export function eventually(check) {
  return until("assertions to hold", async () => {
    await check();
    return true;
  });
}

// Waits for `actual()` to be `expected`.
export async function becomes(what, actual, expected) {
  let last;
  await until(`${what} to be ${JSON.stringify(expected)}`, async () => {
    last = await actual();
    return isEqual(last, expected);
  }).catch((error) => {
    throw new Error(`${error.message}; it is ${JSON.stringify(last)}`);
  });
}

function isEqual(a, b) {
  try {
    assert.deepEqual(a, b);
    return true;
  } catch {
    return false;
  }
}

export async function api(method, path, parameters, { url = urls.full, token } = {}) {
  const headers = { "X-Requested-By": "test" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const body = parameters === undefined ? undefined : JSON.stringify(parameters);
  const response = await fetch(`${url}api/v1${path}`, { method, headers, body });
  const text = await response.text();
  return { status: response.status, json: text === "" ? null : JSON.parse(text) };
}

export const get = async (path, extra) => (await api("GET", path, undefined, extra)).json;
export const tubeStats = (name) => get(`/tubes/${encodeURIComponent(name)}`);

// Returns a count of a tube (ready, reserved, delayed or buried); 0 if the tube does not exist.
export async function jobsIn(name, state) {
  return (await tubeStats(name))[`current-jobs-${state}`] ?? 0;
}

export async function jobState(id) {
  return (await get(`/jobs/${id}`)).state;
}

export async function put(tube, body, query = "") {
  const response = await fetch(`${urls.full}api/v1/tubes/${encodeURIComponent(tube)}/jobs${query}`,
    { method: "POST", headers: { "X-Requested-By": "test" }, body });
  assert.equal(response.status, 201, await response.clone().text());
  return (await response.json()).id;
}

// Requests an action of run_console.py or cluster_test.py.
export async function ask(what) {
  const response = await fetch(`${control}/${what}`, { method: "POST" });
  assert.equal(response.status, 204, `control: ${what}`);
}

// A client of the protocol.
export class Client {
  static async connect() {
    const client = new Client();
    client.socket = connect(queue);
    client.input = Buffer.alloc(0);
    client.socket.on("data", (data) => {
      client.input = Buffer.concat([client.input, data]);
      client.wake?.();
    });
    client.socket.on("error", () => {});
    await new Promise((resolve) => client.socket.once("connect", resolve));
    return client;
  }

  async #until(find) {
    for (;;) {
      const end = find();
      if (end >= 0) return end;
      await new Promise((resolve) => {
        this.wake = resolve;
      });
    }
  }

  async line() {
    const end = await this.#until(() => this.input.indexOf("\r\n"));
    const line = this.input.toString("latin1", 0, end);
    this.input = this.input.subarray(end + 2);
    return line;
  }

  async ask(command) {
    this.socket.write(`${command}\r\n`);
    return this.line();
  }

  // Returns {id, body} of the job of a reply RESERVED.
  async reserve(command = "reserve") {
    const [word, id, bytes] = (await this.ask(command)).split(" ");
    assert.equal(word, "RESERVED");
    const size = Number(bytes) + 2;
    await this.#until(() => (this.input.length >= size ? size : -1));
    const body = Buffer.from(this.input.subarray(0, size - 2));
    this.input = this.input.subarray(size);
    return { id: Number(id), body };
  }

  // Watches only this tube.
  async watchOnly(tube) {
    assert.equal(await this.ask(`watch ${tube}`), "WATCHING 2");
    assert.equal(await this.ask("ignore default"), "WATCHING 1");
  }

  close() {
    this.socket.destroy();
  }
}

// --- the browser

let browser;
let closers = [];     // for everything that a test has opened
let shownPage = null; // the page whose picture is kept if the test fails

export async function launch() {
  browser ??= await chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: kArguments,
    env: { ...process.env, TMPDIR: directory } });
  return browser;
}

export function atEnd(close) {
  closers.push(close);
}

// A page in a context of its own (storage, cache). `problems` lists everything that must not
// happen.
export async function newPage({ context: given, ...contextOptions } = {}) {
  const context = given ?? await (await launch()).newContext(
    { viewport: { width: 1280, height: 800 }, ...contextOptions });
  if (!given) atEnd(() => context.close());
  const page = await context.newPage();
  shownPage = page;
  page.setDefaultTimeout(kSeconds * 1000);
  if (options.slow) await slowDown(page);
  page.problems = [];
  watch(page);
  await page.exposeBinding("reportViolation", (_, text) => {
    page.problems.push(`Content-Security-Policy: ${text}`);
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => globalThis.reportViolation(
      `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
  });
  return page;
}

const pause = () => new Promise((resolve) => setTimeout(resolve, Math.random() < 0.2 ? 1500 * Math.random() : 0));

// With --slow, the page and its test behave as on a busy machine: the scripts of the page take longer, and now and
// then an answer of the API or a step of the test comes late. A test that reads the page too early or too late then
// fails in most runs.
async function slowDown(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: 2 });
  await page.route("**/api/v1/**", async (route) => {
    if (!route.request().url().includes("/events")) await pause();
    await route.continue().catch(() => {});
  });
  for (const name of ["click", "fill", "evaluate", "textContent", "getAttribute", "waitForSelector", "goto"]) {
    const step = page[name].bind(page);
    page[name] = async (...values) => {
      await pause();
      return step(...values);
    };
  }
}

function watch(page) {
  const hosts = new Set(Object.values(urls).map((url) => new URL(url).host));
  page.on("console", (message) => {
    const from = message.location().url;
    // The browser logs each error answer. The page shows these, and tests check them.
    if (message.text().startsWith("Failed to load resource") && from.includes("/api/v1/")) return;
    if (["error", "warning"].includes(message.type())) page.problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => page.problems.push(`error: ${error.stack}`));
  page.on("dialog", (dialog) => {
    page.problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== "blob:" && !hosts.has(host)) page.problems.push(`request: ${request.url()}`);
  });
  page.on("popup", () => page.problems.push("a new window"));
  page.on("framenavigated", (frame) => {
    if (frame !== page.mainFrame()) page.problems.push(`a frame: ${frame.url()}`);
  });
}

// Loads the page at this view, as a new visit, and waits until its numbers are live.
export async function open(page, hash, { url = urls.full, state = "live" } = {}) {
  await page.goto("about:blank");
  await page.goto(url + hash);
  await page.waitForSelector(state === "signin" ? "[data-signin]"
    : `#connection[data-state=${state}]`);
}

// Starts a proxy that serves a server below a path of a host of its own, as a reverse proxy does,
// and returns the address of its console. Each request that it forwards is in `requests`.
export async function serveBelow(path, url, requests = []) {
  const target = new URL(url);
  const proxy = createServer((request, response) => {
    requests.push(request.url);
    if (!request.url.startsWith(path)) {
      response.writeHead(404).end();
      return;
    }
    const { method, headers } = request;
    const forwarded = httpRequest({ host: target.hostname, port: target.port, method, headers,
      path: `/${request.url.slice(path.length)}` }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    request.pipe(forwarded);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const address = `http://127.0.0.1:${proxy.address().port}${path}`;
  urls[address] = address;   // pages may request it
  return address;
}

// Switches to this view within the loaded page.
export async function show(page, hash) {
  await page.evaluate((target) => {
    location.hash = target;
  }, hash);
}

export const hashOf = (page) => new URL(page.url()).hash;
export const title = (page) => page.textContent("#title");
export const row = (name) => `tr[data-key=${JSON.stringify(name)}]`;
export const action = (name, within = "") => `${within} [data-action=${name}]`.trim();
export const submit = (dialog) => `[data-dialog=${dialog}] [data-action=submit]`;

// Returns the message that appears after `run`; earlier messages are removed.
export async function toastAfter(page, run, kind = "ok") {
  await page.evaluate(() => document.getElementById("toasts").replaceChildren());
  await run();
  const toast = page.locator(`[data-toast=${kind}] .toast-text`).first();
  return toast.textContent();
}

// Returns the text of the card of a long action once it has ended in this way.
export async function taskEnd(page, how) {
  const card = page.locator(`[data-task=${how}]`).last();
  return card.locator(".task-count").textContent();
}

// Returns the findings of axe-core, once no transition is under way: in one, a colour is neither the
// former nor the next. It runs through the protocol of the developer tools, which the
// policy of the page does not restrict.
export async function axe(page) {
  const session = await page.context().newCDPSession(page);
  const evaluate = (expression) => session.send("Runtime.evaluate",
    { expression, awaitPromise: true, returnByValue: true });
  await evaluate(kAxe);
  await evaluate(`Promise.allSettled(document.getAnimations()
    .filter((one) => one instanceof CSSTransition).map((one) => one.finished))`);
  const { result, exceptionDetails } = await evaluate(`axe.run(document, { resultTypes: ["violations"] })
    .then(({ violations }) => violations.map(({ impact, id, nodes }) =>
      impact + " " + id + ": " + nodes.slice(0, 3).map(({ target, failureSummary }) =>
        target + " (" + failureSummary.split("\\n").slice(1).join(" ").trim() + ")").join(", ")))`);
  assert.equal(exceptionDetails, undefined);
  await session.detach();
  return result.value;
}

// The number of pixels by which the page is wider than the window.
export function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}

// --- tests

const tests = [];

export function test(name, run) {
  tests.push({ name, run });
}

// Runs the tests whose names contain --only, and ends the process.
export async function runTests() {
  const chosen = tests.filter(({ name }) => name.includes(options.only ?? ""));
  let failed = 0;
  for (const { name, run } of chosen) {
    const begin = performance.now();
    const seconds = () => `${((performance.now() - begin) / 1000).toFixed(1)} s`;
    shownPage = null;
    const pages = [];
    try {
      await run();
      for (const context of browser?.contexts() ?? []) pages.push(...context.pages());
      for (const page of pages) assert.deepEqual(page.problems ?? [], [], "the page's problems");
      console.log(`ok    ${name} (${seconds()})`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name} (${seconds()})\n      ${error.stack.replaceAll("\n", "\n      ")}`);
      await keepPicture(name);
    }
    for (const close of closers.reverse()) await Promise.resolve(close()).catch(() => {});
    closers = [];
  }
  await browser?.close();
  console.log(`${chosen.length - failed} passed, ${failed} failed`);
  process.exit(failed > 0 || chosen.length === 0 ? 1 : 0);
}

async function keepPicture(name) {
  if (!shownPage || shownPage.isClosed()) return;
  mkdirSync(failures, { recursive: true });
  const path = join(failures, `${name.replaceAll(/[^a-z0-9]+/gi, "-")}.png`);
  await shownPage.screenshot({ path }).then(() => console.log(`      ${shownPage.url()}\n      ${path}`),
    () => {});
  if (shownPage.problems.length > 0) console.log("     ", shownPage.problems);
}
