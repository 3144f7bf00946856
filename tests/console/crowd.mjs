// 10,000 tubes and 100,000 jobs: the table of tubes, files, long actions, lost connections, several
// pages at once, and how much of a page changes. Run by run_console.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { action, api, ask, atEnd, becomes, eventually, facts, get, hashOf, jobsIn, launch, newPage, open, put, row,
  runTests, show, submit, taskEnd, test, toastAfter, until, urls } from "./lib.mjs";

const kRows = "#table-tubes tr[data-key]";
const kMostChanges = 5000;

const keys = (page) => page.locator(kRows).evaluateAll((rows) => rows.map((each) => each.dataset.key));

// The rows of a CSV file of RFC 4180.
function parseCsv(text) {
  const rows = [];
  let fields = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    fields.push(quoted === undefined ? plain : quoted.replaceAll("\"\"", "\""));
    if (end === ",") continue;
    rows.push(fields);
    fields = [];
  }
  return rows;
}

// The rows of the file that the button CSV gives; the first has the names of the columns.
async function csv(page, name) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(action("csv"))]);
  assert.equal(download.suggestedFilename(), name);
  return parseCsv(readFileSync(await download.path(), "utf8"));
}

// --- the table of tubes

test("10,000 tubes: top, middle and end", async () => {
  const page = await newPage();
  await open(page, "#/tubes?sort=name");
  await becomes("the tubes", () => page.textContent("[data-count]"), "10,000 tubes");
  // Names are sorted by their characters: digits and signs before letters.
  await eventually(async () => {
    assert.equal((await keys(page))[0], "$(reboot)");
    assert.equal(await page.getAttribute("#table-tubes", "aria-rowcount"), "10001");
  });
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight / 2));
  await until("the middle", async () => (await keys(page)).includes("bulk-05000"));
  await eventually(async () => assert(await page.locator(kRows).count() < 100));
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await until("the end", async () => (await keys(page)).at(-1) === "steps");
  await eventually(async () => assert(await page.locator(kRows).count() < 100));
  await eventually(async () => {
    const last = await page.locator(kRows).last().boundingBox();
    assert(last.y + last.height <= 800, "the last row is in sight");
  });
  // With the keyboard.
  await page.keyboard.press("Home");
  await becomes("the active row", () => page.getAttribute("#table-tubes tr.active", "data-key"), "$(reboot)");
  await page.keyboard.press("End");
  await becomes("the active row", () => page.getAttribute("#table-tubes tr.active", "data-key"), "steps");
  const active = page.locator("#table-tubes tr.active");
  const head = page.locator("#table-tubes th").first();
  for (const key of ["PageUp", "PageUp", "ArrowUp", "k", "PageDown", "j"]) {
    await page.keyboard.press(key);
    await eventually(async () => {
      const [{ y, height }, above] = [await active.boundingBox(), await head.boundingBox()];
      assert(y >= above.y + above.height - 1 && y + height <= 800, `the active row is in sight after ${key}`);
    });
  }
  await eventually(async () =>
    assert.equal(await active.getAttribute("id"), await page.getAttribute("#table-tubes", "aria-activedescendant")));
});

test("10,000 tubes: search", async () => {
  const page = await newPage();
  await open(page, "#/tubes");
  await page.fill("[data-search]", "BULK-0123");
  await becomes("the tubes", () => page.textContent("[data-count]"), "10 of 10,000 tubes");
  await eventually(async () => assert.equal(await page.locator(kRows).count(), 10));
  await page.fill("[data-search]", "no such tube");
  await page.waitForSelector(".empty:visible");
  await page.fill("[data-search]", "");
  await becomes("the tubes", () => page.textContent("[data-count]"), "10,000 tubes");
});

test("10,000 tubes: sort by each column, pinned tubes first, and the file", async () => {
  const page = await newPage({ viewport: { width: 2560, height: 1300 } });
  await open(page, "#/tubes?sort=name");
  await becomes("the tubes", () => page.textContent("[data-count]"), "10,000 tubes");
  await page.click(`${row("__proto__")} ${action("pin")}`);
  await becomes("the first tube", async () => (await keys(page))[0], "__proto__");
  const headers = page.locator("#table-tubes th[data-column]:has(button)");
  const columns = await headers.evaluateAll((cells) => cells.map((each) => each.dataset.column));
  assert.equal(columns.length, 15);
  const names = (await csv(page, "tubes.csv"))[0];
  for (const column of columns) {
    for (const press of [1, 2]) {
      const sorted = () => page.getAttribute(`th[data-column=${column}]`, "aria-sort");
      const before = await sorted();
      await page.click(`th[data-column=${column}] button`);
      const order = await until("another order", async () => await sorted() !== before && sorted());
      assert.match(order, press === 1 && column !== "name" ? /^descending$/ : /^(ascending|descending)$/);
      await eventually(async () => {
        assert(await page.locator(`th[data-column=${column}] button`).evaluate(
          (button) => button.scrollWidth <= button.clientWidth), `the title of ${column} is cut off`);
      });
      const rows = await csv(page, "tubes.csv");
      assert.equal(rows.length, facts.tubes + 1);
      assert.equal(rows[1][names.indexOf("name")], "__proto__");
      const at = names.indexOf(column);
      assert(at >= 0, column);
      const values = rows.slice(2).map((fields) => (column === "name" ? fields[at].replace(/^'/, "")
        : Number(fields[at])));
      const sign = order === "ascending" ? 1 : -1;
      assert(values.every((value, i) => i === 0 || sign * (value < values[i - 1] ? -1 : value > values[i - 1]
        ? 1 : 0) >= 0), `${column} is ${order}`);
    }
  }
});

test("the file of the tubes has their numbers, and no formulas", async () => {
  const page = await newPage();
  await open(page, "#/tubes?sort=buried&order=desc");
  await becomes("the tubes", () => page.textContent("[data-count]"), "10,000 tubes");
  const [names, ...rows] = await csv(page, "tubes.csv");
  assert.equal(new Set(rows.map((fields) => fields[0])).size, facts.tubes);
  const stats = await get("/tubes/mail");
  const mail = Object.fromEntries(names.map((name, i) => [name, rows.find(([tube]) => tube === "mail")[i]]));
  for (const state of ["ready", "reserved", "delayed", "buried", "urgent"]) {
    assert.equal(mail[state], String(stats[`current-jobs-${state}`]));
  }
  assert.equal(mail.total, String(stats["total-jobs"]));
  // A spreadsheet takes text that starts with + for a formula.
  assert(rows.some(([tube]) => tube === "'+SUM(1+1);cmd"));
  assert(!rows.some(([tube]) => /^[=+\-@]/.test(tube)));
});

test("the files of jobs and clients", async () => {
  const page = await newPage();
  await open(page, "#/tubes/mail?state=delayed");
  await becomes("the jobs", () => page.textContent("[data-count]"), "50 jobs loaded, all");
  const [names, ...jobs] = await csv(page, "jobs-mail-delayed.csv");
  assert.deepEqual(jobs.map(([id]) => Number(id)).sort((a, b) => a - b), facts.delayed);
  assert.equal(jobs[0][names.indexOf("delay")], "86400");
  await show(page, "#/clients");
  await page.waitForSelector("#table-clients tr[data-key]");
  const [titles, first] = await csv(page, "clients.csv");
  assert.deepEqual([first[titles.indexOf("watched")], first[titles.indexOf("held")]], ["mail", "20"]);
});

// --- long actions

test("long actions on a tube: kick, move and clear more than 5,000 jobs", async () => {
  const page = await newPage();
  await open(page, "#/tubes/steps");
  await eventually(async () =>
    assert.deepEqual([await jobsIn("steps", "ready"), await jobsIn("steps", "buried")], [6000, 6000]));
  await page.click(action("move"));
  await page.locator("[data-dialog=move-all] select").selectOption("ready");
  await page.fill("[data-dialog=move-all] [name=to]", "steps-2");
  await page.click(submit("move-all"));
  assert.equal(await taskEnd(page, "done"), "6,000 moved to steps-2.");
  await eventually(async () =>
    assert.deepEqual([await jobsIn("steps", "ready"), await jobsIn("steps-2", "ready")], [0, 6000]));
  await page.click(action("kick"));
  await page.waitForSelector("[data-dialog=kick]");
  await eventually(async () => assert.equal(await page.inputValue("[data-dialog=kick] [name=bound]"), "6000"));
  await page.click(submit("kick"));
  await becomes("the end", () => taskEnd(page, "done"), "6,000 kicked.");
  await eventually(async () =>
    assert.deepEqual([await jobsIn("steps", "ready"), await jobsIn("steps", "buried")], [6000, 0]));
  await page.click(action("clear"));
  await page.locator("[data-dialog=clear] select").selectOption("ready");
  await eventually(async () =>
    assert.equal(await page.textContent(submit("clear")), "Remove 6,000 ready jobs of steps"));
  for (let i = 0; i < 3; ++i) await put("steps", "is added meanwhile");
  await page.click(submit("clear"));
  await becomes("the end", () => taskEnd(page, "done"),
    "6,000 removed. 3 jobs that came or changed meanwhile stay.");
  await eventually(async () => assert.equal(await jobsIn("steps", "ready"), 3));
  // In all states.
  await show(page, "#/tubes/steps-2");
  await page.click(action("clear"));
  await page.waitForSelector("[data-dialog=clear]");
  await eventually(async () => assert.equal(await page.textContent(submit("clear")), "Remove 6,000 jobs of steps-2"));
  await page.click(submit("clear"));
  await becomes("the tube", async () => (await api("GET", "/tubes/steps-2")).status, 404);
  await becomes("the end", () => taskEnd(page, "done"), "6,000 removed.");
});

test("a long action shows its progress, goes on in other views, and can be cancelled", async () => {
  const page = await newPage();
  await open(page, "#/tubes/cancelled?view=put");
  await page.fill("textarea", "x");
  await page.fill("[name=repeat]", "1000000");
  await page.click(action("submit", ".put-form"));
  const card = page.locator("[data-task=running]");
  const done = async () => Number((await card.locator(".task-count").textContent()).split(" ")[0]
    .replaceAll(",", ""));
  await until("progress", async () => await done() > 20);
  await eventually(async () =>
    assert.match(await card.locator(".task-count").textContent(), /^[\d,]+ of 1,000,000$/));
  await show(page, "#/tubes");
  const before = await done();
  await until("more progress", async () => await done() > before);
  await eventually(async () =>
    assert(await card.locator("progress").evaluate((bar) => bar.value > 0 && bar.max === 1_000_000)));
  await page.click(action("cancel-task"));
  const text = await taskEnd(page, "cancelled");
  const [, finished] = text.match(/^Cancelled after ([\d,]+) of 1,000,000\.$/);
  const count = Number(finished.replaceAll(",", ""));
  const put = (await get("/tubes/cancelled"))["total-jobs"];
  // Requests in progress may have succeeded.
  assert(put >= count && put <= count + 4, `${put} jobs, ${count} shown`);
});

// --- the connection

test("a lost connection is shown, and is mended by itself", async () => {
  const page = await newPage();
  const other = await newPage();
  await open(page, "#/tubes/mail?state=buried");
  await open(other, "#/");
  const body = page.locator("#table-jobs td.body-cell").first();
  await becomes("a body", async () => (await body.textContent()).includes("user0"), true);
  const buried = await jobsIn("mail", "buried");
  await ask("kill");
  await page.waitForSelector("#connection[data-state=lost]");
  await page.waitForSelector("#banner:visible");
  await eventually(async () => assert.match(await page.textContent("#banner-text"), /^Connection lost: /));
  await until("another attempt", async () => /Trying again/.test(await page.textContent("#banner-wait")));
  // The jobs can still be read, and an action reports why it fails.
  await eventually(async () => assert.match(await body.textContent(), /user0/));
  await page.evaluate(() => scrollTo(0, 1000));
  assert.match(await toastAfter(page, () => page.click(action("kick", "[data-actions=tube]")), "error"),
    /cannot be reached/);
  // The settings may be others when the server is back.
  await page.route("**/api/v1/access", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...await response.json(), title: "another", color: "teal" } });
  });
  await ask("start");
  for (const each of [page, other]) {
    await each.waitForSelector("#connection[data-state=live]");
    await each.waitForSelector("#banner", { state: "hidden" });
  }
  await becomes("the title", async () => (await page.textContent("#server-name")).startsWith("another ("), true);
  await eventually(async () => assert.equal(await jobsIn("mail", "buried"), buried));
  await becomes("the buried jobs", () => page.textContent("[data-state=buried]"), `buried ${buried}`);
  // The kill has ended the client, so its held jobs are ready again.
  await becomes("the reserved jobs", () => page.textContent("[data-state=reserved]"), "reserved 0");
  await becomes("the tile", () => other.textContent("[data-tile=reserved] [data-value]"), "0");
});

test("a lost connection is mended at once by a button", async () => {
  const page = await newPage();
  await open(page, "#/");
  await ask("kill");
  await page.waitForSelector("#banner:visible");
  // After some attempts the pauses are long. Without its timers, the page makes no attempt by itself; in a pause, none
  // is under way.
  await until("a long pause", () => page.evaluate(() => {
    if (!/in [4-9] s/.test(document.getElementById("banner-wait").textContent)) return false;
    for (let last = setTimeout(() => {}); last > 0; --last) clearTimeout(last);
    return true;
  }));
  await ask("start");
  await page.click("#retry");
  await page.waitForSelector("#connection[data-state=live]");
});

test("a page that is opened while the server is down begins when it is up", async () => {
  const page = await newPage();
  await open(page, "#/tubes?q=mail");
  await page.route("**/api/v1/access", (route) => route.abort());
  await page.reload();
  await page.waitForSelector("#banner:visible");
  await page.unroute("**/api/v1/access");
  await page.waitForSelector("#connection[data-state=live]");
  await page.waitForSelector(row("mail"));
});

// Opens all 16 streams of events, and returns functions that end them.
async function useAllStreams() {
  const streams = [];
  for (let i = 0; i < 16; ++i) {
    const abort = new AbortController();
    atEnd(() => abort.abort());
    // The server may not have noticed the end of the streams of other tests.
    const response = await until("a stream", async () => {
      const answer = await fetch(`${urls.full}api/v1/events`, { signal: abort.signal });
      return answer.status === 200 && answer;
    });
    response.body.pipeTo(new WritableStream()).catch(() => {});
    streams.push(() => abort.abort());
  }
  return streams;
}

test("16 streams are in use: a further page polls, says so, and goes on when one has ended", async () => {
  const streams = await useAllStreams();
  const page = await newPage();
  await open(page, "#/tubes", { state: "polling" });
  await eventually(async () => {
    assert.match(await page.textContent("#polling"),
      /^As many streams of events are open as there may be\. This page reads the numbers every 5 seconds/);
    assert.equal(await page.textContent("#connection-text"), "every 5 s");
    assert(!await page.isVisible("#banner"));
  });
  // After a restart of the server, tests before this one may have left further tubes.
  const tubes = (await get("/server"))["current-tubes"].toLocaleString("en");
  await becomes("the tubes", () => page.textContent("[data-count]"), `${tubes} tubes`);
  // Numbers change; new tubes come, and others go.
  const cell = (name, column) => page.textContent(`${row(name)} td[data-column=${column}]`);
  const id = await put("polled", "x");
  await page.fill("[data-search]", "polled");
  await page.waitForSelector(row("polled"));
  await eventually(async () => assert.equal(await cell("polled", "ready"), "1"));
  await put("polled", "y");
  await becomes("the ready jobs", () => cell("polled", "ready"), "2");
  await show(page, "#/");
  await becomes("the buried jobs", () => page.textContent("[data-tile=buried] [data-value]"),
    (await get("/server"))["current-jobs-buried"].toLocaleString("en"));
  await page.waitForSelector("[data-chart=rates] canvas");
  await page.waitForSelector("[data-alert='many unwatched']");
  await api("POST", "/tubes/polled/clear");
  await show(page, "#/tubes?q=polled");
  await page.waitForSelector(row("polled"), { state: "detached" });
  await eventually(async () => assert.equal((await api("GET", `/jobs/${id}`)).status, 404));
  streams[0]();
  await page.waitForSelector("#connection[data-state=live]");
  await page.waitForSelector("#polling", { state: "hidden" });
  await put("polled", "z");
  await becomes("the ready jobs", () => cell("polled", "ready"), "1");
});

test("a page that polls waits 5 seconds between rounds, and makes none while it is hidden", async () => {
  await useAllStreams();
  const page = await newPage();
  let inProgress = 0;
  page.on("request", () => { inProgress += 1; });
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, () => { inProgress -= 1; });
  // The clock of the page stands, except in these steps, which begin when no request is in progress.
  const step = async (milliseconds) => {
    await until("the end of the requests", () => inProgress === 0);
    await page.clock.runFor(milliseconds);
  };
  await page.clock.install();
  await page.addInitScript(() => {
    const real = globalThis.fetch;
    globalThis.begun = { "/api/v1/server": [], "/api/v1/events": [] };
    globalThis.fetch = (url, init) => {
      globalThis.begun[url]?.push(performance.now());
      return real(url, init);
    };
  });
  const begun = (path) => page.evaluate((which) => globalThis.begun[which], path);
  await page.goto(urls.full);
  await page.clock.pauseAt(Date.now() + 3_600_000);
  const rounds = () => begun("/api/v1/server");
  await until("some rounds", async () => {
    await step(500);
    return (await rounds()).length >= 5;
  });
  await eventually(async () => assert.equal(await page.getAttribute("#connection", "data-state"), "polling"));
  const times = (await rounds()).slice(-3);
  for (const [i, time] of times.entries()) assert(i === 0 || time - times[i - 1] >= 5000, `${times}`);
  // Each round begins with an attempt to open a stream.
  const attempts = (await begun("/api/v1/events")).length;
  await eventually(async () => assert(attempts <= (await rounds()).length + 1));
  const setVisible = (visible) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => !value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, visible);
  await setVisible(false);
  await step(0);
  const hidden = (await rounds()).length;
  for (let i = 0; i < 120; ++i) await step(500);
  await eventually(async () => assert.equal((await rounds()).length, hidden, "no round while the page is hidden"));
  await setVisible(true);
  await until("a round", async () => {
    await step(100);
    return (await rounds()).length > hidden;
  });
});

test("two pages at once show the same", async () => {
  const context = await (await launch()).newContext({ viewport: { width: 1280, height: 800 } });
  atEnd(() => context.close());
  const [one, other] = [await newPage({ context }), await newPage({ context })];
  const id = await put("shared", "x");
  await open(one, "#/tubes/shared");
  await open(other, `#/jobs/${id}`);
  await becomes("the ready jobs", () => one.textContent("[data-state=ready]"), "ready 1");
  await other.click(action("reserve"));
  await becomes("the reserved jobs", () => one.textContent("[data-state=reserved]"), "reserved 1");
  await other.click(action("bury"));
  await becomes("the buried jobs", () => one.textContent("[data-state=buried]"), "buried 1");
  await one.click("[data-state=buried]");
  await one.waitForSelector(row(String(id)));
  await other.click(action("kick"));
  await one.waitForSelector(row(String(id)), { state: "detached" });
});

// --- budgets

test("the page is small, and all of it is loaded at first", async () => {
  const page = await newPage();
  await open(page, "#/");
  await page.waitForSelector("[data-chart=rates] canvas");
  // The browser requests the icon again with each title.
  const files = () => page.evaluate(() => performance.getEntriesByType("resource")
    .filter(({ name }, i, all) => !name.includes("/api/") && all.findIndex((each) => each.name === name) === i)
    .map(({ name, encodedBodySize, decodedBodySize }) => ({ name, encodedBodySize, decodedBodySize })));
  const before = await files();
  const html = await page.evaluate(() => performance.getEntriesByType("navigation")[0].encodedBodySize);
  for (const hash of ["#/tubes", "#/tubes/mail", `#/jobs/${facts.ids.json}`, "#/clients", "#/server"]) {
    await show(page, hash);
    await becomes("the view", () => hashOf(page), hash);
  }
  await eventually(async () => assert.deepEqual(await files(), before));
  assert(before.length > 20);
  const bytes = before.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, html);
  console.log(`      ${before.length + 1} files, ${bytes} bytes compressed`);
  assert(bytes < 300_000, `${bytes} bytes`);
  for (const { name, encodedBodySize, decodedBodySize } of before) {
    assert(encodedBodySize < decodedBodySize, `${name} is not compressed`);
  }
});

test("the first paint waits for no answer of the API", async () => {
  const page = await newPage();
  await page.route("**/api/**", () => {});  // never answered
  await page.goto(urls.full);
  await until("the first paint", () => page.evaluate(() =>
    performance.getEntriesByName("first-contentful-paint").length));
});

// Starts counting in how many tasks the page changes its document, and how often at most in one
// task.
const countChanges = (page) => page.evaluate(() => {
  const counts = globalThis.counts = { tasks: 0, most: 0 };
  new MutationObserver((list) => {
    counts.tasks += 1;
    counts.most = Math.max(counts.most, list.length);
  }).observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
});

const counts = (page) => page.evaluate(() => globalThis.counts);

async function tasks(page, count) {
  const begin = (await counts(page)).tasks;
  await until(`${count} tasks that change the page`, async () => (await counts(page)).tasks >= begin + count);
}

test("no task changes much of the page while 10,000 tubes change each second", async () => {
  await ask(`load?${facts.bulk.tubes}`);
  atEnd(() => ask("idle"));
  const page = await newPage();
  await open(page, "#/");
  // A planted task is found.
  await countChanges(page);
  await page.evaluate(() => {
    for (let i = 0; i < 10_000; ++i) document.body.dataset.planted = i;
  });
  await until("the planted task", async () => (await counts(page)).most >= 10_000);
  await page.reload();
  await countChanges(page);
  for (const [hash, present] of [["#/", "[data-chart=rates] canvas"],
    ["#/tubes?sort=ready&order=desc", kRows], ["#/tubes/mail?state=buried", "#table-jobs tr[data-key]"]]) {
    await show(page, hash);
    await page.waitForSelector(present);
    await tasks(page, 5);
  }
  // The same while the page is scrolled and searched.
  await show(page, "#/tubes?sort=total&order=desc");
  await page.waitForSelector(kRows);
  const total = () => page.textContent(`${kRows} td[data-column=ready]`);
  for (let i = 1; i <= 10; ++i) {
    await page.mouse.wheel(0, 3000);
    await page.fill("[data-search]", i % 2 ? `bulk-0${i}` : "");
    await tasks(page, 2);
  }
  const before = await total();
  await until("another number", async () => await total() !== before);
  // About the number of changes in the fewer than 100 visible rows.
  const { most } = await counts(page);
  console.log(`      at most ${most} changes of the document in a task`);
  assert(most < kMostChanges, `${most} changes`);
});

await runTests();
