// How the console looks: its overview and the page of a tube, light and dark, on a phone and on a
// wide screen, compared with the pictures in tests/console/looks/. Run by run_console.py with
// `--fill still`; with `--out DIRECTORY` it writes these pictures instead, to be looked at before
// they are stored.
//
// The pictures are of the same numbers at the same time, always: the server is in test mode, whose
// clock stands, the browser has a fixed time and a fixed font, and a proxy between them gives the
// numbers that depend on the machine and on the day. They are stored at half their size. The last
// test plants faults that a reader would see, and differences that another version of the browser
// or of the font might make.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { difference } from "./compare.mjs";
import { atEnd, failures, newPage, open, options, runTests, test, until, urls } from "./lib.mjs";

const kStored = join(dirname(fileURLToPath(import.meta.url)), "looks");
const kNow = Date.UTC(2026, 0, 15, 12, 34, 56);
const kMostDifferent = 0.03;   // the share of the drawn cells
const kViews = { overview: "#/", tube: "#/tubes/mail?state=buried&sort=pri&order=desc" };
const kSizes = { phone: { width: 390, height: 844 }, wide: { width: 1280, height: 800 } };
const kThemes = ["light", "dark"];

// --- the server

const api = (path) => `${urls.full.slice(0, -1)}${path}`;

// The numbers of the machine and of the day.
const kServer = { time: kNow, pid: 4711, version: "2.0.0", hostname: "queue-1", os: "Linux",
  "rusage-utime": 1.5, "rusage-stime": 0.5, "current-connections": 9, "current-workers": 4,
  "current-waiting": 2, "received-bytes": 1_000_000, "sent-bytes": 2_000_000 };

// The first two events of the stream, as {server, tubes}.
async function firstEvents() {
  const stop = new AbortController();
  const response = await fetch(api("/api/v1/events"), { signal: stop.signal });
  let text = "";
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    assert(!done, `the stream has ended: ${text}`);
    text += Buffer.from(value).toString();
    const events = [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)];
    const found = Object.fromEntries(events.map(([, name, data]) => [name, JSON.parse(data)]));
    if (found.server && found.tubes) {
      stop.abort();
      return found;
    }
  }
}

// Five minutes of samples, with the columns of the server.
async function history() {
  const answer = await (await fetch(api("/api/v1/history"))).json();
  const wave = (i, low, high) => Math.round(low + (high - low) * (1 + Math.sin(i / 6)) / 2);
  const values = (i) => ({ time: kNow / 1000 - 305 + 5 * i, "current-jobs-ready": wave(i, 180, 410),
    "current-jobs-reserved": wave(i + 9, 2, 30), "current-jobs-delayed": wave(i + 4, 20, 60),
    "current-jobs-buried": 4 + Math.floor(i / 8), "total-jobs": 1000 + 60 * i + wave(i, 0, 40),
    "job-timeouts": Math.floor(i / 20), "cmd-delete": 500 + 55 * i + wave(i + 3, 0, 40),
    "current-connections": wave(i, 6, 12), "current-workers": wave(i, 3, 6), "current-waiting": 2,
    "job-memory": wave(i, 120_000, 220_000), "journal-bytes": 0, "journal-live-bytes": 0 });
  const row = (i) => answer.columns.map((column) => {
    assert(column in values(i), `a column of the history: ${column}`);
    return values(i)[column];
  });
  return { ...answer, samples: Array.from({ length: 61 }, (_, i) => row(i)) };
}

// Starts the proxy, and returns the address of its console.
async function serveStill() {
  const { server, tubes } = await firstEvents();
  const samples = JSON.stringify(await history());
  const later = { ...server, ...kServer, time: kNow + 1000, "total-jobs": server["total-jobs"] + 14 };
  const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const last = event("server", later);
  const stream = event("server", { ...server, ...kServer }) + event("tubes", tubes) + last;
  const proxy = createServer(async ({ method, headers, url }, response) => {
    if (url === "/api/v1/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).write(stream);
      const timer = setInterval(() => response.write(last), 500);
      response.on("close", () => clearInterval(timer));
    } else if (url.startsWith("/api/v1/history")) {
      response.writeHead(200, { "Content-Type": "application/json" }).end(samples);
    } else {
      const { accept, "x-requested-by": by } = headers;
      const answer = await fetch(api(url), { method,
        headers: { ...accept && { accept }, ...by && { "X-Requested-By": by } } });
      const kept = ["content-type", "content-security-policy"].filter((name) => answer.headers.has(name));
      response.writeHead(answer.status, Object.fromEntries(kept.map((name) =>
        [name, answer.headers.get(name)]))).end(Buffer.from(await answer.arrayBuffer()));
    }
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  urls.still = `http://127.0.0.1:${proxy.address().port}/`;   // pages may request it
  return urls.still;
}

// --- the pictures

// The style sheet is made by a script, which the policy of the page allows.
function restyle(page, css) {
  return page.evaluate((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }, css);
}

async function openView(url, view, size, theme, css = "") {
  const page = await newPage({ viewport: kSizes[size], colorScheme: theme, locale: "en-US",
    timezoneId: "UTC", deviceScaleFactor: 1 });
  await page.clock.setFixedTime(kNow + 1000);
  const history = page.waitForResponse((response) => response.url().endsWith("/api/v1/history"));
  await open(page, kViews[view], { url });
  await (await history).finished();
  await restyle(page, `body, button, input, select, textarea { font-family: "DejaVu Sans" }
    :root { --mono: "DejaVu Sans Mono" } ${css}`);
  if (view === "overview") {
    // Charts outside of the window are not drawn.
    await page.waitForFunction(() => [...document.querySelectorAll("[data-chart]")].every((chart) =>
      chart.getBoundingClientRect().top >= innerHeight || chart.querySelector("canvas")));
    await until("the rates", async () => (await page.textContent("[data-value=puts]")) === "14");
    // After some seconds, tubes without workers need attention too.
    await page.clock.setFixedTime(kNow + 10_000);
    for (const text of ["paused", "no worker"])
      await page.waitForSelector(`[data-alerts] li:has-text("${text}")`);
  } else {
    await until("the bodies", async () => (await page.locator("td.body-cell").first().textContent())
      .includes("Order"));
  }
  await page.mouse.move(5, 5);
  return page;
}

// Two pictures in a row are equal: nothing moves.
async function picture(page) {
  let last;
  await until("a picture that stays", async () => {
    const before = last;
    last = await page.screenshot({ animations: "disabled", caret: "hide" });
    return before?.equals(last);
  });
  return last;
}

// Returns the picture at half its size, as WebP.
async function reduced(page, png, quality) {
  const base64 = await page.evaluate(async ([source, how]) => {
    const bytes = Uint8Array.from(atob(source), (each) => each.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(bitmap.width / 2, bitmap.height / 2);
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const blob = await canvas.convertToBlob({ type: "image/webp", quality: how });
    return btoa(String.fromCharCode(...new Uint8Array(await blob.arrayBuffer())));
  }, [png.toString("base64"), quality]);
  return Buffer.from(base64, "base64");
}

const nameOf = (view, size, theme) => `${view}-${size}-${theme}.webp`;
const stored = (name) => readFileSync(join(kStored, name));
const kStoredQuality = 0.4;

// How much the page differs from a stored picture; its own is `png`.
async function compared(page, name) {
  const png = await picture(page);
  const blank = await newPage();
  return { png, share: await difference(blank, await reduced(blank, png, 1), stored(name)) };
}

for (const view of Object.keys(kViews)) {
  for (const size of Object.keys(kSizes)) {
    for (const theme of kThemes) {
      const name = nameOf(view, size, theme);
      test(`${view}, ${size}, ${theme}, looks as it did`, async () => {
        const page = await openView(await serveStill(), view, size, theme);
        if (options.out) {
          mkdirSync(options.out, { recursive: true });
          const blank = await newPage();
          writeFileSync(join(options.out, name), await reduced(blank, await picture(page), kStoredQuality));
          return;
        }
        const { png, share } = await compared(page, name);
        console.log(`      ${(100 * share).toFixed(2)} % of the cells differ`);
        if (share <= kMostDifferent) return;
        mkdirSync(failures, { recursive: true });
        writeFileSync(join(failures, name.replace(/webp$/, "png")), png);
        assert.fail(`${(100 * share).toFixed(1)} % of the cells differ`);
      });
    }
  }
}

// --- what is found

const kFaults = {
  "no tiles": ".tile { visibility: hidden }",
  "narrow tiles": ".tiles { grid-template-columns: repeat(2, 120px) }",
  "no charts": ".chart, [data-chart] { visibility: hidden }",
  "texts over texts": "dd, dt, td, th, li, a { line-height: 0.3 }",
  "another background": "body, .panel, .tile { background: #778899 }",
  "large text": "body { font-size: 17px }",
};
const kAlike = {
  "letters that are hinted in another way": "body { text-rendering: geometricPrecision }",
  "other distances of the letters": "body { letter-spacing: 0.1px }",
  "text a little lower": "dd, dt, td, th { position: relative; top: 1px }",
};

test("faults are found, and small differences of the text are not taken for them", async () => {
  if (options.out) return;
  const url = await serveStill();
  for (const [changes, isFault] of [[kFaults, true], [kAlike, false]]) {
    for (const [what, css] of Object.entries(changes)) {
      const page = await openView(url, "overview", "wide", "light", css);
      const { share } = await compared(page, nameOf("overview", "wide", "light"));
      console.log(`      ${what}: ${(100 * share).toFixed(2)} %`);
      assert.equal(share > kMostDifferent, isFault, what);
    }
  }
  const dark = await openView(url, "overview", "wide", "dark");
  const { share } = await compared(dark, nameOf("overview", "wide", "light"));
  assert(share > kMostDifferent, "the other theme");
});

await runTests();
