// Each action on tubes, jobs and the server, with its effect as the server reports it; and the
// keyboard. Run by run_console.py.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { action, api, atEnd, becomes, Client, eventually, facts, get, hashOf, jobsIn, jobState, newPage, open, put,
  row, runTests, show, submit, taskEnd, test, title, toastAfter, tubeStats, until } from "./lib.mjs";

let count = 0;

// Puts jobs in some states into a tube; `client` holds the reserved jobs. Returns {ready: [ids],
// ...}.
async function fill(name, client, { ready = 0, buried = 0, delayed = 0, reserved = 0 },
  body = (i) => `body ${i}`) {
  const ids = async (number, query = "") => {
    const made = [];
    for (let i = 0; i < number; ++i) made.push(await put(name, body(i), query));
    return made;
  };
  const jobs = { buried: await ids(buried), reserved: await ids(reserved, "?ttr=86400") };
  for (const id of jobs.buried) {
    await client.reserve(`reserve-job ${id}`);
    assert.equal(await client.ask(`bury ${id} 1024`), "BURIED");
  }
  for (const id of jobs.reserved) await client.reserve(`reserve-job ${id}`);
  jobs.ready = await ids(ready);
  jobs.delayed = await ids(delayed, "?delay=86400");
  return jobs;
}

// Makes a tube with jobs in some states: {name, client, ready: [ids], ...}.
async function newTube(counts, body) {
  const name = `tube-${++count}`;
  const client = await Client.connect();
  atEnd(() => client.close());
  return { name, client, ...await fill(name, client, counts, body) };
}

// Opens the menu of a tube's row, and chooses from it.
async function chooseFromMenu(page, name, choice) {
  await page.click(`${row(name)} ${action("row-menu")}`);
  await page.click(action(choice, "[data-dialog=row-menu]"));
}

const tubeAction = (name) => action(name, "[data-actions=tube]");

async function fillDialog(page, dialog, values) {
  for (const [name, value] of Object.entries(values)) {
    const field = page.locator(`[data-dialog=${dialog}] [name=${name}]`);
    if (await field.evaluate((element) => element.tagName) === "SELECT") await field.selectOption(value);
    else await field.fill(value);
  }
}

// --- tubes

test("tubes: pause and resume from the table", async () => {
  const { name } = await newTube({ ready: 1 });
  const page = await newPage();
  await open(page, `#/tubes?q=${name}`);
  await page.waitForSelector(row(name));
  await chooseFromMenu(page, name, "pause");
  await fillDialog(page, "pause", { delay: "777" });
  assert.equal(await toastAfter(page, () => page.click(submit("pause"))),
    `${name} is paused for 12 min 57 s.`);
  await eventually(async () => assert((await tubeStats(name))["pause-time-left"] > 700));
  await page.waitForSelector(`${row(name)} .chip-paused`);
  await toastAfter(page, () => chooseFromMenu(page, name, "resume"));
  await eventually(async () => assert.equal((await tubeStats(name))["pause-time-left"], 0));
  await page.waitForSelector(`${row(name)} .chip-paused`, { state: "detached" });
});

test("tubes: kick from the table, buried and delayed", async () => {
  const { name } = await newTube({ buried: 4, delayed: 3 });
  const page = await newPage();
  await open(page, `#/tubes?q=${name}`);
  await page.waitForSelector(row(name));
  await chooseFromMenu(page, name, "kick");
  await page.waitForSelector("[data-dialog=kick]");
  await eventually(async () => {
    assert.deepEqual(await page.locator("[data-dialog=kick] option").allTextContents(),
      ["buried (4)", "delayed (3)"]);
    assert.equal(await page.inputValue("[data-dialog=kick] [name=bound]"), "4");
  });
  await fillDialog(page, "kick", { bound: "3" });
  assert.equal(await toastAfter(page, () => page.click(submit("kick"))), `${name}: 3 jobs kicked.`);
  await eventually(async () => assert.equal(await jobsIn(name, "buried"), 1));
  await becomes("the ready jobs of the row", () => page.textContent(`${row(name)} td[data-column=ready]`), "3");
  await chooseFromMenu(page, name, "kick");
  await fillDialog(page, "kick", { state: "delayed", bound: "100" });
  assert.equal(await toastAfter(page, () => page.click(submit("kick"))), `${name}: 3 jobs kicked.`);
  await eventually(async () => {
    assert.deepEqual([await jobsIn(name, "delayed"), await jobsIn(name, "buried"), await jobsIn(name, "ready")],
      [0, 1, 6]);
  });
});

test("tubes: clear, with a confirmation that names the count", async () => {
  const { name } = await newTube({ ready: 5, buried: 2, delayed: 1 });
  const page = await newPage();
  await open(page, `#/tubes?q=${name}`);
  await page.waitForSelector(row(name));
  await chooseFromMenu(page, name, "clear");
  await page.waitForSelector("[data-dialog=clear]");
  const button = () => page.textContent(submit("clear"));
  await eventually(async () => {
    assert.equal(await button(), `Remove 8 jobs of ${name}`);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.action), "cancel");
  });
  await fillDialog(page, "clear", { state: "reserved" });
  await eventually(async () => {
    assert.equal(await button(), `Remove 0 reserved jobs of ${name}`);
    assert(await page.isDisabled(submit("clear")));
  });
  await page.keyboard.press("Escape");
  await eventually(async () => assert.equal(await jobsIn(name, "ready"), 5));
  await chooseFromMenu(page, name, "clear");
  await fillDialog(page, "clear", { state: "buried" });
  await eventually(async () => assert.equal(await button(), `Remove 2 buried jobs of ${name}`));
  assert.equal(await toastAfter(page, () => page.click(submit("clear"))), `${name}: 2 jobs removed.`);
  await eventually(async () => assert.deepEqual([await jobsIn(name, "ready"), await jobsIn(name, "buried")], [5, 0]));
  await chooseFromMenu(page, name, "clear");
  await page.waitForSelector("[data-dialog=clear]");
  assert.equal(await toastAfter(page, () => page.click(submit("clear"))), `${name}: 6 jobs removed.`);
  await eventually(async () => assert.equal(await jobsIn(name, "ready"), 0));
});

// --- An action handles only the jobs that its dialog showed, and leaves jobs that are added
// meanwhile.

const kAdded = { ready: 4, buried: 3, delayed: 2, reserved: 1 };
const kAll = Object.keys(kAdded);
const stays = (jobs) => ` ${jobs} jobs that came or changed meanwhile stay.`;
const staysOf = (state) => (kAdded[state] === 1 ? " 1 job that came or changed meanwhile stays."
  : stays(kAdded[state]));

// Returns the ids that exist.
async function existing(ids) {
  const found = [];
  for (const id of ids) if ((await api("GET", `/jobs/${id}`)).status === 200) found.push(id);
  return found;
}

// Opens a dialog on a tube, adds jobs in all states, confirms, and returns the message, the earlier
// jobs and the added jobs.
async function confirmWhileJobsAreAdded(page, dialog, values, button = tubeAction(dialog)) {
  const tube = await newTube({ ready: 5, buried: 4, delayed: 3, reserved: 2 });
  await open(page, `#/tubes/${tube.name}`);
  await page.click(button);
  await page.waitForSelector(`[data-dialog=${dialog}]`);
  await fillDialog(page, dialog, values(tube));
  const shown = await page.textContent(submit(dialog));
  const added = await fill(tube.name, tube.client, kAdded);
  const message = await toastAfter(page, () => page.click(submit(dialog)));
  return { tube, added, shown, message };
}

async function clearWhileJobsAreAdded(page, state) {
  const { tube, added, shown, message } = await confirmWhileJobsAreAdded(page, "clear", () => ({ state }));
  const states = state === "all" ? kAll : [state];
  const before = states.flatMap((each) => tube[each]);
  assert.equal(shown, `Remove ${before.length} ${state === "all" ? "" : `${state} `}jobs of ${tube.name}`);
  assert.deepEqual(await existing(before), []);
  const others = kAll.flatMap((each) => (states.includes(each) ? added[each]
    : [...tube[each], ...added[each]]));
  assert.deepEqual(await existing(others), others);
  assert.equal(message, `${tube.name}: ${before.length} jobs removed.${
    state === "all" ? stays(10) : staysOf(state)}`);
}

async function moveWhileJobsAreAdded(page, state) {
  const { tube, added, message } = await confirmWhileJobsAreAdded(page, "move-all",
    ({ name }) => ({ state, to: `${name}-to` }), tubeAction("move"));
  const moved = [...tube[state]];
  for (const id of moved) assert.equal((await get(`/jobs/${id}`)).tube, `${tube.name}-to`);
  for (const id of added[state]) assert.equal((await get(`/jobs/${id}`)).tube, tube.name);
  assert.equal(message,
    `${tube.name}: ${moved.length} jobs moved to ${tube.name}-to.${staysOf(state)}`);
}

async function kickWhileJobsAreAdded(page, state) {
  const { tube, added, message } = await confirmWhileJobsAreAdded(page, "kick",
    (shown) => ({ state, bound: String(shown[state].length) }));
  for (const id of tube[state]) assert.equal(await jobState(id), "ready");
  for (const id of added[state]) assert.equal(await jobState(id), state);
  assert.equal(message, `${tube.name}: ${tube[state].length} jobs kicked.`);
}

test("tubes: clear, while jobs are added", async () => {
  const page = await newPage();
  for (const state of ["all", ...kAll]) await clearWhileJobsAreAdded(page, state);
});

test("tubes: move and kick, while jobs are added", async () => {
  const page = await newPage();
  for (const state of ["ready", "delayed", "buried"]) await moveWhileJobsAreAdded(page, state);
  for (const state of ["delayed", "buried"]) await kickWhileJobsAreAdded(page, state);
});

// Serves tube-actions.js with `text` replaced.
async function plant(page, text, replacement) {
  await page.route("**/tube-actions.js", async (route) => {
    const response = await route.fetch();
    const script = await response.text();
    assert(script.includes(text), `tube-actions.js has no ${text}`);
    await route.fulfill({ response, body: script.replace(text, replacement) });
  });
}

test("tubes: an action that forgets its bound is found", async () => {
  for (const [check, states, text, replacement] of [
    [clearWhileJobsAreAdded, ["all", ...kAll], "{ state, bound: most }", "{ state }"],
    [moveWhileJobsAreAdded, ["ready", "delayed", "buried"], "{ state, to, bound }", "{ state, to }"],
    [kickWhileJobsAreAdded, ["delayed", "buried"], "{ bound, state:", "{ bound: 4294967295, state:"]]) {
    const page = await newPage();
    await plant(page, text, replacement);
    for (const state of states) await assert.rejects(check(page, state), assert.AssertionError, state);
  }
});

test("tubes: clear, with jobs that wait for a group", async () => {
  const { name, client } = await newTube({});
  const holding = async (tags) => Number((await client.ask(
    `put-in-tube ${name} 0 0 60 1 ${tags}\r\nx`)).split(" ")[1]);
  const group = `group-of-${name}`;
  // The second is a member of the group for which the third waits.
  const jobs = [await holding(`grp:${group}`), await holding(`aft:${group} grp:${group}-2`),
    await holding(`aft:${group}-2`)];
  const page = await newPage();
  await open(page, `#/tubes/${name}`);
  await page.click(tubeAction("clear"));
  await page.waitForSelector("[data-dialog=clear]");
  await eventually(async () => {
    assert.deepEqual(await page.locator("[data-dialog=clear] option").allTextContents(),
      ["in all states: 3", "ready: 1", "reserved: 0", "delayed: 0", "buried: 0", "held: 2"]);
  });
  const added = await holding(`aft:${group}-2`);
  assert.equal(await toastAfter(page, () => page.click(submit("clear"))),
    `${name}: 3 jobs removed. 1 job that came or changed meanwhile stays.`);
  await eventually(async () => assert.deepEqual(await existing([...jobs, added]), [added]));
});

test("a tube: pause, kick, move, clear and pin", async () => {
  const { name } = await newTube({ ready: 2, buried: 5, delayed: 1 });
  const page = await newPage();
  await open(page, `#/tubes/${name}`);
  await page.click(tubeAction("pause"));
  await fillDialog(page, "pause", { delay: "3600" });
  await toastAfter(page, () => page.click(submit("pause")));
  await page.waitForSelector(tubeAction("resume"));
  await becomes("the pause", async () => /^(1 h|59 min)/.test(await page.textContent("[data-value=pause]")), true);
  assert.equal(await toastAfter(page, () => page.click(tubeAction("resume"))),
    `The pause of ${name} has ended.`);
  await page.waitForSelector(tubeAction("pause"));
  await eventually(async () => assert.equal((await tubeStats(name))["pause-time-left"], 0));

  await page.click(tubeAction("kick"));
  await fillDialog(page, "kick", { bound: "2" });
  await toastAfter(page, () => page.click(submit("kick")));
  await eventually(async () => assert.equal(await jobsIn(name, "buried"), 3));

  await page.click(tubeAction("move"));
  await fillDialog(page, "move-all", { state: "buried", to: `${name}-dead` });
  assert.equal(await toastAfter(page, () => page.click(submit("move-all"))),
    `${name}: 3 jobs moved to ${name}-dead.`);
  await eventually(async () =>
    assert.deepEqual([await jobsIn(name, "buried"), await jobsIn(`${name}-dead`, "buried")], [0, 3]));

  await page.click(tubeAction("pin"));
  await eventually(async () => assert.equal(await page.textContent(tubeAction("pin")), "Unpin"));
  await show(page, "#/tubes");
  await becomes("the first tube", () => page.getAttribute("#table-tubes tr[data-key]", "data-key"), name);
  await page.reload();
  await becomes("the first tube", () => page.getAttribute("#table-tubes tr[data-key]", "data-key"), name);

  await show(page, `#/tubes/${name}`);
  await page.click(tubeAction("clear"));
  await page.waitForSelector("[data-dialog=clear]");
  await eventually(async () => assert.equal(await page.textContent(submit("clear")), `Remove 5 jobs of ${name}`));
  await toastAfter(page, () => page.click(submit("clear")));
  await becomes("the tube", async () => (await api("GET", `/tubes/${name}`)).status, 404);
});

test("a mistake in a dialog is shown in it", async () => {
  const { name } = await newTube({ ready: 1 });
  const page = await newPage();
  await open(page, `#/tubes/${name}`);
  await page.click(tubeAction("move"));
  await fillDialog(page, "move-all", { to: "-not a name" });
  await page.click(submit("move-all"));
  await page.waitForSelector("[data-dialog=move-all] .problem:visible");
  await page.click(action("cancel", "[data-dialog=move-all]"));
  await page.waitForSelector("[data-dialog]", { state: "detached" });
  await eventually(async () => assert.equal(await jobsIn(name, "ready"), 1));
});

test("a tube: policies", async () => {
  const { name } = await newTube({ ready: 1 });
  const page = await newPage();
  await open(page, `#/tubes/${name}?view=policy`);
  const edit = (key) => page.click(`${row(key)} ${action("edit-policy")}`);
  await edit("rate");
  await fillDialog(page, "policy", { value: "nonsense" });
  await page.click(submit("policy"));
  await page.waitForSelector("[data-dialog=policy] .problem:visible");
  await fillDialog(page, "policy", { value: "100/60" });
  assert.equal(await toastAfter(page, () => page.click(submit("policy"))), "rate is set.");
  const policy = await get(`/tubes/${name}/policy`);
  assert.deepEqual([policy.rate, policy["rate-from"]], ["100/60", "wire"]);
  await becomes("the value", () => page.textContent(`${row("rate")} .value`), "100/60");
  await page.click(`${row("rate")} ${action("remove-policy")}`);
  assert.equal(await toastAfter(page, () => page.click(submit("remove-policy"))), "rate is removed.");
  await eventually(async () => assert.equal((await get(`/tubes/${name}/policy`))["rate-from"], "default"));
  await page.waitForSelector(`${row("rate")} ${action("remove-policy")}`, { state: "detached" });
  await edit("dead");
  await fillDialog(page, "policy", { value: `${name}-dead` });
  await toastAfter(page, () => page.click(submit("policy")));
  await eventually(async () => assert.equal((await get(`/tubes/${name}/policy`)).dead, `${name}-dead`));
});

test("a tube: put a job, and many", async () => {
  const page = await newPage();
  const { name } = await newTube({});
  await open(page, `#/tubes/${name}?view=put`);
  await page.waitForSelector(".notice:visible");  // the tube does not exist yet
  const form = async (values) => {
    for (const [field, value] of Object.entries(values)) await page.fill(`.put-form [name=${field}]`, value);
  };
  const body = "{\"a\": [1, 2]}\r\nü <b>";
  await form({ body, pri: "7", delay: "600500ms", ttr: "90", tags: "idp:one max:3" });
  await becomes("the size", () => page.textContent("[data-size]"), "20 bytes of at most 8,388,608");
  await page.click(action("submit", ".put-form"));
  await page.waitForSelector("[data-result] a");
  const id = Number((await page.textContent("[data-result] a")).match(/\d+/)[0]);
  const stats = await get(`/jobs/${id}`);
  assert.deepEqual([stats.tube, stats.pri, stats.ttr, stats["max-attempts"], stats.state],
    [name, 7, 90, 3, "delayed"]);
  assert(stats.delay >= 600 && stats.delay <= 601);
  const { client } = await newTube({});
  assert.match(await client.ask(`peek ${id}`), /^FOUND \d+ 20$/);  // a textarea has no carriage returns
  assert.equal(await client.line(), "{\"a\": [1, 2]}\n\xc3\xbc <b>");
  // Another put with the same unique key.
  await page.click(action("submit", ".put-form"));
  await becomes("the result", async () => /^No job was added: its unique key is that of job \d+ \(\w+\)\.$/.test(
    await page.textContent("[data-result]")), true);
  // Many puts, numbered.
  await form({ body: "number {n}", tags: "idp:key-{n}", delay: "0", repeat: "25" });
  await page.check(".put-form [name=numbered]");
  await page.click(action("submit", ".put-form"));
  assert.equal(await taskEnd(page, "done"), "25 put.");
  await eventually(async () => assert.equal((await tubeStats(name))["total-jobs"], 26));
  await client.watchOnly(name);
  const bodies = new Set();
  for (let i = 0; i < 25; ++i) bodies.add(String((await client.reserve("reserve-with-timeout 0")).body));
  assert(bodies.has("number 1") && bodies.has("number 25"));
  assert.equal(bodies.size, 25);
});

test("the form of a put keeps what is written until it was put", async () => {
  const page = await newPage();
  const { name } = await newTube({});
  const value = (field) => page.inputValue(`.put-form [name=${field}]`);
  await open(page, `#/tubes/${name}?view=put`);
  await page.fill("textarea", "a long text");
  await page.fill("[name=tags]", "no-such-tag");
  await page.fill("[name=pri]", "5");
  await page.check("[name=numbered]");
  await page.click(action("submit", ".put-form"));
  await page.waitForSelector(".put-form .problem:visible");
  const isKept = async () => {
    await page.waitForSelector(".put-form");
    await eventually(async () => {
      assert.deepEqual([await value("body"), await value("tags"), await value("pri")],
        ["a long text", "no-such-tag", "5"]);
      assert(await page.isChecked("[name=numbered]"));
    });
  };
  await isKept();
  await show(page, "#/tubes/mail?view=put");
  await becomes("the heading", () => title(page), "mail");
  await eventually(async () => assert.equal(await value("body"), ""));
  await show(page, `#/tubes/${name}?view=put`);
  await becomes("the heading", () => title(page), name);
  await isKept();
  // The server asks for a token in the meantime.
  await page.route("**/api/v1/tubes/*/jobs?*", (route) => route.fulfill({ status: 401, json: {} }));
  await page.click(action("submit", ".put-form"));
  await page.waitForSelector("[data-signin]");
  await page.unroute("**/api/v1/tubes/*/jobs?*");
  await page.fill("[name=token]", "any");
  await page.click(action("submit"));
  await becomes("the heading", () => title(page), name);
  await isKept();
  await page.fill("[name=tags]", "max:3");
  await page.click(action("submit", ".put-form"));
  await page.waitForSelector("[data-result] a");
  await eventually(async () => assert.equal(await jobsIn(name, "ready"), 1));
  await show(page, "#/tubes");
  await becomes("the heading", () => title(page), "Tubes");
  await show(page, `#/tubes/${name}?view=put`);
  await page.waitForSelector(".put-form");
  await eventually(async () => assert.equal(await value("body"), ""));
});

test("a job is edited and put again", async () => {
  const { name, client } = await newTube({});
  const body = "{\"to\": \"ü\"}\r\n<b>";
  const id = await put(name, body, "?pri=7&ttr=90&tags=idp:one:5%20con:api:2%20max:3:bury%20ttl:4000");
  const page = await newPage();
  await open(page, `#/jobs/${id}`);
  await page.waitForSelector("[data-format]");
  await page.click(action("put-again"));
  await page.waitForSelector(".put-form");
  await eventually(async () => {
    assert.equal(await title(page), name);
    assert.equal(await page.textContent("[data-note]"),
      `Filled from job ${id}, which stays as it is. Its line ends CR LF become LF.`);
  });
  const value = (field) => page.inputValue(`.put-form [name=${field}]`);
  await eventually(async () => {
    assert.deepEqual(await Promise.all(["body", "pri", "delay", "ttr", "tags", "repeat"].map(value)),
      [body.replace("\r", ""), "7", "0", "90", "idp:one:5 con:api:2 max:3:bury ttl:4000", "1"]);
  });
  // With the same unique key, no job is added.
  await page.click(action("submit", ".put-form"));
  await becomes("the result", async () => /^No job was added/.test(await page.textContent("[data-result]")), true);
  await page.fill("[name=tags]", "max:3:bury");
  await page.fill("textarea", "edited");
  await page.click(action("submit", ".put-form"));
  await becomes("the result", async () => /^Put as job \d+\.$/.test(await page.textContent("[data-result]")), true);
  await eventually(async () => assert.equal(await jobsIn(name, "ready"), 2));
  const [added] = (await page.textContent("[data-result]")).match(/\d+/);
  assert.match(await client.ask(`peek ${added}`), /^FOUND \d+ 6$/);
  assert.equal(await client.line(), "edited");
  // A job that is gone, and bodies that cannot be edited.
  await show(page, `#/jobs/${id}`);
  await page.waitForSelector("[data-format]");
  await client.ask(`delete ${id}`);
  await page.waitForSelector(".notice:visible");
  await page.click(action("put-again"));
  await page.waitForSelector(".put-form");
  await eventually(async () => assert.equal(await value("body"), body.replace("\r", "")));
  for (const [which, why] of [["binary", /is no text/], ["large", /more than 1,048,576 bytes/]]) {
    await show(page, `#/jobs/${facts.ids[which]}`);
    await becomes("the heading", () => title(page), `Job ${facts.ids[which]}`);
    await page.waitForSelector(action("put-again"));
    assert.match(await toastAfter(page, () => page.click(action("put-again")), "error"), why);
    await eventually(async () => assert.equal(await title(page), `Job ${facts.ids[which]}`));
  }
});

test("the id and the body of a job are copied", async () => {
  const page = await newPage({ permissions: ["clipboard-read", "clipboard-write"] });
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const copy = async (button, what) => {
    assert.equal(await toastAfter(page, () => page.click(action(button))), `Copied ${what}.`);
    return copied();
  };
  await open(page, `#/jobs/${facts.ids.json}`);
  await page.waitForSelector("[data-format=json]");
  assert.equal(await copy("copy-id", "the id"), String(facts.ids.json));
  // As it is, and not as it is shown.
  assert.match(await copy("copy-body", "the body"), /^\{"to": "ada@example\.org", /);
  await show(page, `#/jobs/${facts.ids.binary}`);
  await page.waitForSelector("[data-format=hex]");
  await becomes("the button", () => page.textContent(action("copy-body")), "Copy hex");
  assert.match(await copy("copy-body", "the body"), /^fffec328203c623e/);
  // A page without TLS from another machine has no clipboard of this kind.
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { configurable: true,
    value: undefined }));
  await page.click(action("copy-id"));
  await toastAfter(page, () => page.click(action("copy-id")));
  await page.evaluate(() => delete navigator.clipboard);
  await becomes("the id", copied, String(facts.ids.binary));
  await page.evaluate(() => {
    document.execCommand = () => false;
    Object.defineProperty(navigator, "clipboard", { configurable: true, value: undefined });
  });
  assert.match(await toastAfter(page, () => page.click(action("copy-id")), "error"), /refuses to copy the id/);
});

test("a tube: the times of its jobs", async () => {
  const { name, client } = await newTube({ ready: 20 });
  await client.watchOnly(name);
  for (let i = 0; i < 20; ++i) await client.ask(`delete ${(await client.reserve()).id}`);
  const page = await newPage();
  await open(page, `#/tubes/${name}?view=times`);
  for (const kind of ["queue", "processing"]) {
    const section = page.locator(`[data-histogram=${kind}]`);
    await section.waitFor();
    await eventually(async () => assert.match(await section.locator("p").nth(1).textContent(), /^20 jobs: p50 /));
    const jobs = await section.locator("td.numeric:first-of-type").allTextContents();
    assert.equal(jobs.reduce((sum, text) => sum + Number(text), 0), 20);
  }
});

// --- jobs

test("the jobs of a tube, by their state", async () => {
  const tube = await newTube({ ready: 3, reserved: 2, delayed: 4, buried: 5 });
  const page = await newPage();
  await open(page, `#/tubes/${tube.name}`);
  for (const [state, jobs] of [["ready", 3], ["reserved", 2], ["delayed", 4], ["buried", 5]]) {
    await page.click(`[data-state=${state}]`);
    await becomes(`the ${state} jobs`, () => page.locator("#table-jobs tr[data-key]").evaluateAll(
      (rows) => rows.map((each) => Number(each.dataset.key)).sort((a, b) => a - b)), tube[state]);
    await eventually(async () => {
      assert.equal(await page.textContent(`[data-state=${state}]`), `${state} ${jobs}`);
      assert.match(await page.textContent("[data-count]"), new RegExp(`^${jobs} jobs loaded, all$`));
    });
  }
  await page.click("[data-state=all]");
  await becomes("all jobs", () => page.locator("#table-jobs tr[data-key]").count(), 14);
  await page.click("[data-state=next]");
  await becomes("the jobs given next", () => page.locator("#table-jobs tr[data-key]").count(), 3);
  await show(page, "#/tubes/reports?state=held");
  await becomes("the held jobs", () => page.locator("#table-jobs tr[data-key]").evaluateAll(
    (rows) => rows.map((each) => Number(each.dataset.key))), [facts.after]);
});

test("pages of jobs, and sorting", async () => {
  const page = await newPage();
  await open(page, "#/tubes/mail?state=ready");
  const loaded = () => page.textContent("[data-count]");
  await becomes("the jobs", loaded, "100 jobs loaded");
  await page.locator(action("more")).scrollIntoViewIfNeeded();
  await page.click(action("more"));
  await becomes("the jobs", loaded, "200 jobs loaded");
  await page.click(action("much-more"));
  await becomes("the jobs", loaded, "1,200 jobs loaded");
  await page.click(action("more"));
  await becomes("the jobs", loaded, "1,205 jobs loaded, all");
  await page.evaluate(() => scrollTo(0, 0));
  await page.click("th[data-column=id] button");
  await becomes("the first job", () => page.getAttribute("#table-jobs tr[data-key]", "data-key"),
    String(facts.ready.at(-1) + 1));
  await page.click("th[data-column=pri] button");
  await page.click("th[data-column=pri] button");
  await becomes("the first job", () => page.getAttribute("#table-jobs tr[data-key]", "data-key"),
    String(facts.ready.at(-1) + 1));
});

test("the server searches bodies and filters jobs, and the page says how many it looked at", async () => {
  const page = await newPage();
  await open(page, "#/tubes/mail?state=ready");
  const count = () => page.textContent("[data-count]");
  const keys = () => page.locator("#table-jobs tr[data-key]").evaluateAll((rows) =>
    rows.map((each) => Number(each.dataset.key)));
  await becomes("the jobs", count, "100 jobs loaded");
  await page.click("th[data-column=id] button");
  await becomes("the jobs", count, "100 of 1,205 jobs loaded; sorted: all");
  await page.fill("[data-search]", "Order 1111 has");
  await becomes("the jobs", count, "1 job found among 1,205, all");
  await eventually(async () => assert.deepEqual(await keys(), [facts.ready[1111 - 370]]));
  assert.match(hashOf(page), /q=Order\+1111\+has/);
  await eventually(async () => assert(!await page.isVisible(action("more"))));
  await page.fill("[data-search]", "Order");
  await becomes("the jobs", count, "100 of 1,204 jobs found among 1,205; sorted: all");
  await eventually(async () => assert.equal(await page.textContent(action("more")), "Find 100 more"));
  await page.click(action("much-more"));
  await becomes("the jobs", count, "1,100 of 1,204 jobs found among 1,205; sorted: all");
  // Several filters, from an address.
  await show(page, "#/tubes/mail?state=ready&pri_below=2&age_below=1d");
  await becomes("the jobs", count, "1 job found among 1,205, all");
  await eventually(async () => {
    assert.deepEqual(await keys(), [facts.ready.at(-1) + 1]);
    assert(await page.isVisible("[data-filters]"));
    assert.equal(await page.inputValue("[name=pri_below]"), "2");
  });
  await page.fill("[name=failures_over]", "0");
  await becomes("the jobs", count, "0 jobs found among 1,205, all");
  await eventually(async () => assert.equal(await page.textContent(".jobs .empty"), "No job matches."));
  // A wrong value is named.
  await page.fill("[name=age_over]", "yesterday");
  await becomes("the problem", () => page.textContent(".jobs .empty"),
    "the parameter age_over is not of the form: integer < 2^32, or with a unit as 90s, 5m, 2h, 1d");
  await page.click(action("clear-filters"));
  await becomes("the jobs", count, "100 jobs loaded");
  assert.equal(hashOf(page), "#/tubes/mail?state=ready");
  await show(page, "#/tubes/mail?state=next");
  await becomes("the field", () => page.isDisabled("[data-search]"), true);
});

test("a column sorts all jobs of the tube, and the page says among how many", async () => {
  const { name } = await newTube({});
  for (let i = 0; i < 1300; ++i) await put(name, "x", `?pri=${(i * 7) % 1300}`);
  const page = await newPage();
  const shown = () => page.locator("#table-jobs tr[data-key] td[data-column=pri]").first().textContent();
  const count = () => page.textContent("[data-count]");
  await open(page, `#/tubes/${name}?state=ready`);
  await becomes("the jobs", count, "100 jobs loaded");
  await page.click("th[data-column=pri] button");
  await becomes("the jobs", count, "100 of 1,300 jobs loaded; sorted: all");
  await becomes("the greatest priority", shown, "1,299");
  await page.click("th[data-column=pri] button");
  await becomes("the least priority", shown, "0");
  await becomes("the jobs", count, "100 of 1,300 jobs loaded; sorted: all");
  // The pages of a sorted list follow one another, to its end.
  await page.click(action("much-more"));
  await becomes("the jobs", count, "1,100 of 1,300 jobs loaded; sorted: all");
  await page.click(action("much-more"));
  await becomes("the jobs", count, "1,300 jobs loaded, all");
  await eventually(async () => assert(!await page.isVisible(action("more"))));
  // An order in an address, with a filter; and back to the order of the ids.
  await show(page, `#/tubes/${name}?state=ready&pri_over=99&sort=pri&order=asc`);
  await becomes("the jobs", count, "100 of 1,200 jobs found among 1,300; sorted: all");
  await becomes("the first priority", shown, "100");
  await page.selectOption(action("sort"), { label: "by id" });
  await becomes("the jobs", count, "100 jobs found among 115; more to search");
});

test("a column sorts the rows at once, also while the pointer moves over them", async () => {
  const { name, ready } = await newTube({ ready: 1300 });
  const page = await newPage();
  const first = page.locator("#jobs-row-0");
  await page.route((url) => url.pathname === `/api/v1/tubes/${name}/jobs` && url.searchParams.has("sort"),
    async (route) => {
      const { x, y } = await first.boundingBox();
      await page.mouse.move(x + 300, y + 5);
      await page.mouse.move(x + 300, y + 15);
      await route.continue();
    });
  await open(page, `#/tubes/${name}?state=ready`);
  const count = () => page.textContent("[data-count]");
  await becomes("the jobs", count, "100 jobs loaded");
  await page.click(action("much-more"));
  await becomes("the jobs", count, "1,100 jobs loaded");
  await page.evaluate(() => scrollTo(0, 0));
  await becomes("the first row", () => first.getAttribute("data-key"), String(ready[0]));
  await page.click("th[data-column=id] button");
  await becomes("the jobs", count, "1,100 of 1,300 jobs loaded; sorted: all");
  await eventually(async () => assert.equal(await first.getAttribute("data-key"), String(ready.at(-1))));
});

test("an order of very many jobs ends at 10,000 rows, says so, and is not repeated by itself", async () => {
  const page = await newPage();
  const pages = new Set();
  const rows = (from, end) => Array.from({ length: end - from }, (_, i) => ({ id: from + i + 1,
    state: "ready", pri: 0, age: 0, delay: 0, ttr: 60, "time-left": 0, reserves: 0, timeouts: 0,
    releases: 0, buries: 0, kicks: 0, bytes: 1 }));
  await page.route((url) => url.pathname === "/api/v1/tubes/mail/jobs" && url.searchParams.has("sort"),
    (route) => {
      const asked = new URL(route.request().url()).searchParams;
      const from = Number(asked.get("from"));
      const end = Math.min(from + Number(asked.get("limit")), 10_000);
      pages.add(from);
      return route.fulfill({ json: { total: 12_345, next: end % 10_000, jobs: rows(from, end) } });
    });
  await open(page, "#/tubes/mail?state=ready&sort=age&order=desc");
  const count = () => page.textContent("[data-count]");
  await becomes("the count", count, "100 of 12,345 jobs loaded; sorted: all");
  await eventually(async () => {
    assert(await page.isDisabled(action("auto")));
    assert.equal(await page.locator("label:has([data-action=auto])").textContent(),
      "Auto: off above 10,000 jobs looked at");
  });
  for (let i = 1; i < 10; ++i) {
    await page.click(action("much-more"));
    await becomes("the count", count, `${i},100 of 12,345 jobs loaded; sorted: all`);
  }
  await page.click(action("much-more"));
  await becomes("the count", count, "10,000 of 12,345 jobs loaded, the most of a sorted list; sorted: all");
  await eventually(async () => assert(!await page.isVisible(action("much-more"))));
  assert.equal(pages.size, 11);
});

test("a search in very many jobs stops, says so, and can be continued", async () => {
  const page = await newPage();
  const pages = new Set();
  await page.route((url) => url.pathname === "/api/v1/tubes/mail/jobs" && url.searchParams.has("q"),
    (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get("from"));
      pages.add(from);
      const next = from + 1000;
      return route.fulfill({ json: { next: next >= 80_000 ? 0 : next, looked: 1000, jobs: [] } });
    });
  await open(page, "#/tubes/mail?state=ready&q=rare");
  const count = () => page.textContent("[data-count]");
  await becomes("the count", count, "0 jobs found among 51,000; more to search");
  await eventually(async () =>
    assert.equal(await page.textContent(".jobs .empty"), "None of the jobs that were looked at matches."));
  // It is not repeated by itself.
  await eventually(async () => {
    assert.equal(await page.locator("label:has([data-action=auto])").textContent(),
      "Auto: off above 10,000 jobs looked at");
  });
  assert.equal(pages.size, 51);
  await page.click(action("more"));
  await becomes("the count", count, "0 jobs found among 80,000, all");
  assert.equal(pages.size, 80);
});

test("a refresh that ends after more jobs were loaded does not take them away", async () => {
  const page = await newPage();
  // Refreshes are answered when the test allows it.
  const held = [];
  let holds = false;
  await page.route((url) => url.pathname === "/api/v1/tubes/mail/jobs" && url.searchParams.get("from") === "0",
    (route) => (holds ? held.push(route) : route.continue()));
  await open(page, "#/tubes/mail?state=ready");
  const loaded = () => page.textContent("[data-count]");
  await becomes("the jobs", loaded, "100 jobs loaded");
  holds = true;
  await page.keyboard.press("r");
  await until("a refresh", () => held.length > 0);
  await page.click(action("more"));
  await becomes("the jobs", loaded, "200 jobs loaded");
  holds = false;
  const [answered] = await Promise.all([
    page.waitForResponse((response) => response.url() === held[0].request().url()), held[0].continue()]);
  await answered.finished();
  // A later request for more begins after the jobs that are there.
  await page.click(action("much-more"));
  await becomes("the jobs", loaded, "1,200 jobs loaded");
});

test("back from a job, the list has its place, its rows, its order and its search", async () => {
  const { name } = await newTube({ ready: 1300 });
  const page = await newPage();
  await open(page, `#/tubes/${name}?state=ready`);
  const count = () => page.textContent("[data-count]");
  const auto = page.locator("label:has([data-action=auto])");
  await becomes("the jobs", count, "100 jobs loaded");
  await eventually(async () => assert.equal(await auto.textContent(), "Auto"));
  // More rows come below: those that are read stay where they are.
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  const end = await page.evaluate(() => scrollY);
  await page.click(action("much-more"));
  await becomes("the jobs", count, "1,100 jobs loaded");
  await eventually(async () => {
    assert.equal(await page.evaluate(() => new Promise((resolve) => {
      requestAnimationFrame(() => requestAnimationFrame(() => resolve(scrollY)));
    })), end);
  });
  // Above 1,000 rows the list is not loaded again by itself.
  await eventually(async () => {
    assert.equal(await auto.textContent(), "Auto: off above 1,000 rows");
    assert(await page.isDisabled(action("auto")));
  });
  await page.click("th[data-column=id] button");
  await becomes("the jobs", count, "1,100 of 1,300 jobs loaded; sorted: all");
  await page.evaluate(() => scrollTo(0, 20_000));
  const seen = () => page.evaluate(() => {
    const head = document.querySelector("#table-jobs th").getBoundingClientRect().bottom;
    const found = [...document.querySelectorAll("#table-jobs tr[data-key]")].find((each) => {
      const { top } = each.getBoundingClientRect();
      return top >= head && top < innerHeight;
    });
    return found && [found.dataset.key, Math.round(found.getBoundingClientRect().top)];
  });
  const place = await until("the middle", async () => await page.evaluate(() => scrollY) === 20_000 && seen());
  const link = page.locator(`${row(place[0])} td[data-column=id] a`);
  let total = "1,300";
  const isBack = async () => {
    await becomes("the heading", () => title(page), name);
    await becomes("the jobs", count, `1,100 of ${total} jobs loaded; sorted: all`);
    await eventually(async () => {
      const [key, top] = await until("a row", seen);
      assert.equal(key, place[0]);
      assert(Math.abs(top - place[1]) <= 1, `${top}, not ${place[1]}`);
      assert.equal(await page.getAttribute("th[data-column=id]", "aria-sort"), "descending");
    });
  };
  for (const back of [() => page.goBack(), () => page.keyboard.press("Backspace"),
    () => page.click("#crumbs a:last-of-type")]) {
    await link.click();
    await becomes("the heading", () => title(page), `Job ${place[0]}`);
    await page.waitForSelector("[data-key=tube] a");
    await back();
    await isBack();
  }
  // A change of the job is seen: the rows are loaded again, all of them.
  await link.click();
  await page.click(action("delete", "[data-actions=job]"));
  await toastAfter(page, () => page.click(submit("delete")));
  await page.keyboard.press("Backspace");
  await page.waitForSelector(row(place[0]), { state: "detached" });
  total = "1,299";
  await becomes("the jobs", count, `1,100 of ${total} jobs loaded; sorted: all`);
  // The refresh by hand keeps the rows too.
  await page.keyboard.press("r");
  await becomes("the jobs", count, `1,100 of ${total} jobs loaded; sorted: all`);
  // So does a list of found jobs.
  const all = (await get(`/tubes/${name}/jobs?limit=1`)).jobs[0].id;
  await show(page, `#/tubes/${name}?state=ready&pri_over=0`);
  await becomes("the jobs", count, "100 jobs found among 100; more to search");
  await page.click(`${row(String(all))} td[data-column=id] a`);
  await becomes("the heading", () => title(page), `Job ${all}`);
  await page.goBack();
  await becomes("the jobs", count, "100 jobs found among 100; more to search");
  await eventually(async () => assert.equal(await page.inputValue("[name=pri_over]"), "0"));
  // After another view, the list begins at its top.
  await show(page, "#/clients");
  await becomes("the heading", () => title(page), "Clients");
  await show(page, `#/tubes/${name}?state=ready`);
  await becomes("the jobs", count, "100 jobs loaded");
  await eventually(async () => assert.equal(await page.evaluate(() => scrollY), 0));
});

test("back from a job by keyboard, the same row is active", async () => {
  const tube = await newTube({ buried: 40 });
  const page = await newPage({ viewport: { width: 390, height: 700 } });
  await open(page, `#/tubes/${tube.name}?state=buried`);
  await page.waitForSelector("#table-jobs tr[data-key]");
  for (let i = 0; i < 30; ++i) await page.keyboard.press("j");
  const active = () => page.getAttribute("#table-jobs tr.active", "data-key");
  const id = String(tube.buried[29]);
  await becomes("the active row", active, id);
  await page.keyboard.press("Enter");
  await becomes("the heading", () => title(page), `Job ${id}`);
  await page.waitForSelector("[data-key=tube] a");
  await page.keyboard.press("Backspace");
  await becomes("the active row", active, id);
  await eventually(async () => {
    const { y } = await page.locator("#table-jobs tr.active").boundingBox();
    assert(y > 0 && y < 700);
  });
  await page.keyboard.press("j");
  await until("the next row", async () => await active() !== id);
});

test("many jobs: kick, move, re-prioritize, delete", async () => {
  const tube = await newTube({ buried: 6 });
  const page = await newPage();
  await open(page, `#/tubes/${tube.name}?state=buried`);
  const boxes = page.locator("#table-jobs tr[data-key] td.check");
  await becomes("the rows", () => boxes.count(), 6);
  await boxes.nth(0).click();
  await boxes.nth(2).click({ modifiers: ["Shift"] });
  await eventually(async () => assert.equal(await page.textContent("[data-selected]"), "3 selected"));
  await page.click(action("reprioritize-selected"));
  await fillDialog(page, "reprioritize", { pri: "42" });
  await page.click(submit("reprioritize"));
  assert.equal(await taskEnd(page, "done"), "3 re-prioritized.");
  await eventually(async () => {
    for (const [i, id] of tube.buried.entries()) assert.equal((await get(`/jobs/${id}`)).pri, i < 3 ? 42 : 1024);
  });
  await page.waitForSelector("[data-selected]", { state: "hidden" });

  await boxes.nth(0).click();
  await boxes.nth(1).click();
  await page.click(action("kick-selected"));
  await becomes("the buried jobs", () => jobsIn(tube.name, "buried"), 4);
  await eventually(async () =>
    assert.deepEqual(await Promise.all(tube.buried.slice(0, 2).map(jobState)), ["ready", "ready"]));
  await becomes("the rows", () => boxes.count(), 4);

  await page.click(action("select-all"));
  await eventually(async () => assert.equal(await page.textContent("[data-selected]"), "4 selected"));
  await boxes.nth(3).click();
  await eventually(async () => assert.equal(await page.textContent("[data-selected]"), "3 selected"));
  await page.click(action("move-selected"));
  await fillDialog(page, "move", { tube: `${tube.name}-dead` });
  await page.click(submit("move"));
  await becomes("the buried jobs", () => jobsIn(`${tube.name}-dead`, "buried"), 3);

  await show(page, `#/tubes/${tube.name}-dead?state=buried`);
  await becomes("the rows", () => boxes.count(), 3);
  await page.click(action("select-all"));
  await page.click(action("delete-selected"));
  await eventually(async () => assert.equal(await page.textContent(submit("delete")), "Delete 3 jobs"));
  await page.click(submit("delete"));
  await becomes("the tube", async () => (await api("GET", `/tubes/${tube.name}-dead`)).status, 404);
});

test("many jobs: what failed is listed", async () => {
  const tube = await newTube({ buried: 5 });
  const page = await newPage();
  await open(page, `#/tubes/${tube.name}?state=buried`);
  await becomes("the rows", () => page.locator("#table-jobs tr[data-key]").count(), 5);
  await page.uncheck(action("auto"));
  await page.click(action("select-all"));
  for (const id of tube.buried.slice(0, 2)) await tube.client.ask(`delete ${id}`);
  await page.click(action("kick-selected"));
  assert.equal(await taskEnd(page, "failed"), "3 kicked, 2 failed.");
  await eventually(async () => {
    assert.equal(await page.locator(".task-failures li").count(), 2);
    assert.equal(await jobsIn(tube.name, "ready"), 3);
  });
});

test("one selected job that is gone: the refusal is shown", async () => {
  const tube = await newTube({ buried: 2 });
  const page = await newPage();
  await open(page, `#/tubes/${tube.name}?state=buried`);
  await page.uncheck(action("auto"));
  await page.locator(`${row(String(tube.buried[0]))} td.check`).click();
  await tube.client.ask(`delete ${tube.buried[0]}`);
  await toastAfter(page, () => page.click(action("kick-selected")), "error");
});

test("a job: kick, re-prioritize, move, delete", async () => {
  const tube = await newTube({ buried: 1 });
  const [id] = tube.buried;
  const page = await newPage();
  await open(page, `#/jobs/${id}`);
  const fact = (key) => page.textContent(`[data-key=${key}] dd`);
  const press = (name) => page.click(action(name, "[data-actions=job]"));
  await page.waitForSelector(action("kick"));
  await eventually(async () => assert.equal(await fact("buries"), "1"));
  await press("kick");
  await becomes("the state", () => fact("state"), "ready");
  await eventually(async () => assert.equal(await jobState(id), "ready"));
  await press("reprioritize");
  await eventually(async () => assert.equal(await page.inputValue("[data-dialog=reprioritize] [name=pri]"), "1024"));
  await fillDialog(page, "reprioritize", { pri: "1" });
  await page.click(submit("reprioritize"));
  await becomes("the priority", () => fact("pri"), "1");
  await eventually(async () => assert.equal((await get(`/jobs/${id}`)).pri, 1));
  await press("move");
  await fillDialog(page, "move", { tube: `${tube.name}-b` });
  await page.click(submit("move"));
  await becomes("the tube", () => fact("tube"), `${tube.name}-b`);
  await eventually(async () => {
    assert.equal((await get(`/jobs/${id}`)).tube, `${tube.name}-b`);
    assert.equal(await page.textContent("#crumbs a:last-of-type"), `${tube.name}-b`);
  });
  await press("delete");
  await eventually(async () => assert.equal(await page.textContent(submit("delete")), `Delete job ${id}`));
  await page.click(submit("delete"));
  await becomes("the notice", () => page.textContent(".notice:visible"),
    "This job no longer exists: it was deleted, or it expired.");
  await eventually(async () => assert.equal((await api("GET", `/jobs/${id}`)).status, 404));
});

test("a job that a client holds: delete by force", async () => {
  const tube = await newTube({ reserved: 1 });
  const [id] = tube.reserved;
  const page = await newPage();
  await open(page, `#/jobs/${id}`);
  await page.click(action("delete-force"));
  await eventually(async () =>
    assert.match(await page.textContent("[data-dialog=delete-force] p"), /A client holds this job/));
  await page.click(submit("delete-force"));
  await page.waitForSelector(".notice:visible");
  await eventually(async () => assert.equal((await api("GET", `/jobs/${id}`)).status, 404));
  assert.equal(await tube.client.ask(`delete ${id}`), "NOT_FOUND");
});

// Returns whether the page shows as many seconds to be left as the server does. Time passes while
// both are read.
function showsTimeLeft(page, id) {
  return page.evaluate(async (job) => {
    const shown = () => document.querySelector("[data-held] progress").value;
    const before = shown();
    const { "time-left": left } = await (await fetch(`api/v1/jobs/${job}`)).json();
    return shown() - 1 <= left && left <= before + 1;
  }, id);
}

test("a job: reserve, touch, release, bury, delete", async () => {
  const tube = await newTube({});
  const id = await put(tube.name, "x", "?ttr=86400");
  const page = await newPage();
  await open(page, `#/jobs/${id}`);
  const reserve = async () => {
    await page.click(action("reserve"));
    await page.waitForSelector("[data-held]:visible");
    await eventually(async () => assert.equal(await jobState(id), "reserved"));
  };
  await reserve();
  await eventually(async () => assert.equal(await page.textContent("#holds a"), `job ${id}`));
  // Another page does not hold it; a reload keeps it.
  const other = await newPage();
  await open(other, `#/jobs/${id}`);
  await other.waitForSelector(action("delete-force"));
  await page.reload();
  await page.waitForSelector("[data-held]:visible");
  // The age at which the TTR ends.
  const end = async () => {
    const { age, "time-left": left } = await get(`/jobs/${id}`);
    return age + left;
  };
  const first = await end();
  await until("the time that is left to shrink", async () => (await get(`/jobs/${id}`))["time-left"] < 86395);
  await becomes("the countdown", () => showsTimeLeft(page, id), true);
  await page.click(action("touch"));
  await until("a later end", async () => await end() > first + 2);
  await becomes("the countdown", () => showsTimeLeft(page, id), true);

  await page.click(action("release"));
  await fillDialog(page, "release", { pri: "5", delay: "600" });
  await page.click(submit("release"));
  await becomes("the state", () => jobState(id), "delayed");
  await eventually(async () =>
    assert.deepEqual([(await get(`/jobs/${id}`)).pri, (await get(`/jobs/${id}`)).releases], [5, 1]));
  await page.waitForSelector("[data-held]", { state: "hidden" });
  await page.waitForSelector("#holds", { state: "hidden" });

  await reserve();
  await page.click(action("bury"));
  await becomes("the state", () => jobState(id), "buried");
  await page.waitForSelector("[data-held]", { state: "hidden" });
  await reserve();
  await page.click(action("delete-held"));
  await becomes("the job", async () => (await api("GET", `/jobs/${id}`)).status, 404);
  await page.waitForSelector("[data-held]", { state: "hidden" });
});

test("a job that is held until its TTR ends", async () => {
  const tube = await newTube({});
  const id = await put(tube.name, "x", "?ttr=2");
  const page = await newPage();
  await open(page, `#/jobs/${id}`);
  // A slow machine may show the panel too briefly to be seen from here.
  const shown = page.evaluate(() => new Promise((resolve) => {
    new MutationObserver(() => resolve()).observe(document.querySelector("[data-held]"),
      { attributeFilter: ["hidden"] });
  }));
  await page.click(action("reserve"));
  await shown;
  await page.waitForSelector("[data-held]", { state: "hidden" });
  await becomes("the state", () => page.textContent("[data-key=state] dd"), "ready");
  await becomes("the timeouts", () => page.textContent("[data-key=timeouts] dd"), "1");
});

test("reserve the next job of a tube", async () => {
  const tube = await newTube({ ready: 1 });
  const page = await newPage();
  await open(page, `#/tubes/${tube.name}`);
  await page.click(action("reserve-next"));
  await page.waitForSelector("[data-held]:visible");
  await eventually(async () => {
    assert.equal(await title(page), `Job ${tube.ready[0]}`);
    assert.equal(await jobState(tube.ready[0]), "reserved");
  });
  await show(page, `#/tubes/${tube.name}`);
  assert.equal(await toastAfter(page, () => page.click(action("reserve-next")), "info"),
    `${tube.name} has no job to reserve now.`);
  await show(page, `#/jobs/${tube.ready[0]}`);
  await page.click(action("delete-held"));
  await becomes("the job", async () => (await api("GET", `/jobs/${tube.ready[0]}`)).status, 404);
});

test("a job of a group, and one that waits for it", async () => {
  const page = await newPage();
  await open(page, `#/jobs/${facts.group[0]}`);
  await page.click(action("show-group"));
  await page.waitForSelector("[data-dialog=group] [data-key=ready]");
  await eventually(async () => {
    assert.equal(await page.textContent("[data-dialog=group] [data-key=ready] dd"), "2");
    assert.equal(await page.textContent("[data-dialog=group] [data-key=waiting-jobs] dd"), "1");
  });
  await page.keyboard.press("Escape");
  await show(page, `#/jobs/${facts.after}`);
  await becomes("the heading", () => title(page), `Job ${facts.after}`);
  await page.click(action("show-group"));
  await page.waitForSelector("[data-dialog=group] [data-key=ready]");
});

test("a body is downloaded as it is", async () => {
  const page = await newPage();
  await open(page, `#/jobs/${facts.ids.binary}`);
  await page.waitForSelector("[data-format=hex]");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(action("download-body"))]);
  assert.equal(download.suggestedFilename(), `job-${facts.ids.binary}.bin`);
  const data = readFileSync(await download.path());
  assert.equal(data.length, 278);
  assert.deepEqual([...data.subarray(0, 4), ...data.subarray(-2)], [0xff, 0xfe, 0xc3, 0x28, 0xfe, 0xff]);
});

// --- clients, the server

test("clients: address, tubes, held jobs, idle time", async () => {
  const tube = await newTube({ reserved: 3 });
  await tube.client.watchOnly(tube.name);
  await tube.client.ask(`use ${tube.name}-out`);
  const page = await newPage();
  await open(page, `#/clients?q=${tube.name}`);
  await becomes("the clients", () => page.locator("#table-clients tr[data-key]").count(), 1);
  const cell = (column) => page.textContent(`#table-clients tr[data-key] td[data-column=${column}]`);
  await eventually(async () => {
    assert.equal(await cell("address"), `127.0.0.1:${tube.client.socket.localPort}`);
    assert.deepEqual(await Promise.all(["used", "watched", "held", "waiting"].map(cell)),
      [`${tube.name}-out`, tube.name, "3", "no"]);
    assert.match(await cell("idle"), /^\d+ s$/);
  });
  const waiting = tube.client.reserve();
  await page.keyboard.press("r");
  await becomes("the wait", () => cell("waiting"), "yes");
  const id = await put(tube.name, "x");
  assert.equal((await waiting).id, id);
});

test("drain and undrain", async () => {
  const page = await newPage();
  await open(page, "#/server");
  const put = async () => {
    const client = await Client.connect();
    const reply = await client.ask("put 0 0 60 1\r\nx");
    client.close();
    return reply.split(" ")[0];
  };
  await page.click(action("drain"));
  // The text depends on drain.exit, which is "never" here.
  await eventually(async () => {
    assert.match(await page.textContent("[data-dialog=drain]"),
      /Workers still get the jobs that are here\. The server does not exit\./);
  });
  await toastAfter(page, () => page.click(submit("drain")));
  await page.waitForSelector(action("undrain"));
  assert.equal(await put(), "DRAINING");
  await page.waitForSelector(".fact:has-text('refused: draining')");
  // Every view shows it, and a put is refused with a message.
  await show(page, "#/");
  await page.waitForSelector("[data-alert=draining]");
  await show(page, "#/tubes/mail?view=put");
  await page.fill("textarea", "x");
  await page.click(action("submit", ".put-form"));
  await page.waitForSelector(".put-form .problem:visible");
  await show(page, "#/server");
  await page.click(action("undrain"));
  await toastAfter(page, () => page.click(submit("undrain")));
  await page.waitForSelector(action("drain"));
  assert.equal(await put(), "INSERTED");
});

test("the server: settings, numbers and capabilities", async () => {
  const page = await newPage();
  await open(page, "#/server");
  const stats = await get("/server");
  const { settings } = await get("/settings");
  await becomes("the settings", () => page.locator("[data-table=settings] tr[data-key]").count(),
    settings.length);
  await becomes("the numbers", () => page.locator(".view-server .numbers [data-key]").count(),
    Object.keys(stats).length);
  await becomes("the process", () => page.textContent(".numbers [data-key=pid] dd"), String(stats.pid));
  await eventually(async () => assert.match(await page.textContent(".capabilities"), /put-in-tube/));
  await page.fill("[data-search]", "job_bytes");
  await becomes("the settings", () => page.locator("[data-table=settings] tr[data-key]").count(), 1);
  await eventually(async () => assert.equal(await page.locator("[data-table=settings] tr.changed").count(), 1));
});

// --- the keyboard

test("by keyboard alone: find a stuck tube, look at a buried job, kick it and watch it go", async () => {
  const tube = await newTube({ buried: 3 }, (i) => `{"order": ${i}}`);
  const [id] = tube.buried;
  // A worker that waits for jobs.
  await tube.client.watchOnly(tube.name);
  const worker = (async () => {
    const job = await tube.client.reserve();
    await tube.client.ask(`delete ${job.id}`);
    return job.id;
  })();
  const page = await newPage();
  const { keyboard } = page;
  await open(page, "#/");
  await keyboard.type("gt");
  await becomes("the heading", () => title(page), "Tubes");
  await keyboard.press("/");
  await keyboard.type(tube.name);
  await becomes("the tubes", () => page.locator("#table-tubes tr[data-key]").count(), 1);
  await keyboard.press("Escape");
  await keyboard.press("j");
  await keyboard.press("Enter");
  await becomes("the heading", () => title(page), tube.name);
  // A tube without ready jobs opens at its buried jobs.
  await page.waitForSelector(row(String(id)));
  await eventually(async () => assert.equal(await page.getAttribute("[data-state=buried]", "aria-current"), "page"));
  await keyboard.press("j");
  await keyboard.press("v");
  await becomes("the body", () => page.textContent("[data-preview] [data-body]"), "{\n  \"order\": 0\n}");
  await keyboard.press("Enter");
  await becomes("the heading", () => title(page), `Job ${id}`);
  await page.waitForSelector(action("kick"));
  // To the first button of the view.
  await until("the focus on the button", async () => {
    await keyboard.press("Tab");
    return page.evaluate(() => document.activeElement.dataset.action === "kick");
  });
  await keyboard.press("Enter");
  assert.equal(await worker, id);
  await becomes("the notice", () => page.textContent(".notice:visible"),
    "This job no longer exists: it was deleted, or it expired.");
  await keyboard.press("Backspace");
  await becomes("the heading", () => title(page), tube.name);
  await becomes("the buried jobs", () => page.textContent("[data-state=buried]"), "buried 2");
});

test("the active row is never below the preview", async () => {
  const page = await newPage({ viewport: { width: 800, height: 700 } });
  // The bodies arrive after the last key, and increase the height of the preview.
  let release;
  const released = new Promise((resolve) => { release = resolve; });
  await page.route("**/api/v1/jobs/*/body*", async (route) => {
    await released;
    await route.continue();
  });
  await open(page, "#/tubes/mail?state=buried");
  await page.waitForSelector("#table-jobs tr[data-key]");
  await page.keyboard.press("v");
  for (let i = 0; i < 25; ++i) await page.keyboard.press("j");
  release();
  await until("the body of the active job", async () =>
    (await page.textContent("[data-preview]")).includes("subject"));
  await eventually(async () => {
    const active = await page.locator("#table-jobs tr.active").boundingBox();
    const preview = await page.locator("[data-preview]").boundingBox();
    assert(active.y + active.height <= preview.y);
  });
});

test("shortcuts, and the list of them", async () => {
  const page = await newPage();
  const { keyboard } = page;
  await open(page, "#/");
  await keyboard.press("?");
  await page.waitForSelector("[data-dialog=shortcuts]");
  await eventually(async () =>
    assert((await page.locator("[data-dialog=shortcuts] kbd").allTextContents()).length >= 15));
  await keyboard.press("Escape");
  for (const [keys, heading] of [["gt", "Tubes"], ["gc", "Clients"], ["gs", "Server"], ["go", "Overview"]]) {
    await keyboard.type(keys);
    await becomes("the heading", () => title(page), heading);
  }
  await keyboard.type("gg");
  await page.waitForSelector("[data-dialog=goto]");
  await keyboard.type("mail");
  await becomes("the first", () => page.textContent("#goto-0 .name"), "mail");
  await keyboard.press("Enter");
  await becomes("the heading", () => title(page), "mail");
  await keyboard.type("gg");
  await keyboard.type(String(facts.ids.html));
  await keyboard.press("Enter");
  await becomes("the heading", () => title(page), `Job ${facts.ids.html}`);
  // A menu, a pin and a selection.
  await keyboard.type("gt");
  await page.waitForSelector("#table-tubes tr[data-key]");
  await keyboard.press("j");
  const first = await page.getAttribute("#table-tubes tr.active", "data-key");
  await keyboard.press("m");
  await page.waitForSelector("[data-dialog=row-menu]");
  await keyboard.press("Escape");
  await keyboard.press("p");
  await page.waitForSelector(`${row(first)}.pinned`);
  await keyboard.press("p");
  await page.waitForSelector(`${row(first)}:not(.pinned)`);
  await show(page, "#/tubes/mail?state=buried");
  await page.waitForSelector("#table-jobs tr[data-key]");
  await keyboard.press("j");
  await keyboard.press("x");
  await keyboard.press("Shift+ArrowDown");
  await keyboard.press("Shift+ArrowDown");
  await becomes("the selection", () => page.textContent("[data-selected]"), "3 selected");
  await keyboard.press("Control+a");
  await becomes("the selection", () => page.textContent("[data-selected]"), "100 selected");
  await keyboard.press("Escape");
  await page.waitForSelector("[data-selected]", { state: "hidden" });
  // A key pressed in a field belongs to the field.
  await keyboard.press("/");
  await keyboard.type("?gt");
  await eventually(async () => assert.equal(await page.inputValue("[data-search]"), "?gt"));
  await until("the address", () => /q=%3Fgt/.test(hashOf(page)));
});

test("the focus stays in a dialog, and returns to where it was", async () => {
  const page = await newPage();
  await open(page, "#/tubes/mail");
  await page.focus(tubeAction("clear"));
  await page.keyboard.press("Enter");
  await page.waitForSelector("[data-dialog=clear]");
  for (let i = 0; i < 8; ++i) {
    await page.keyboard.press("Tab");
    await eventually(async () => {
      assert(await page.evaluate(() => document.activeElement === document.body
        || Boolean(document.activeElement.closest("dialog"))));
    });
  }
  await page.keyboard.press("Escape");
  await becomes("the focus", () => page.evaluate(() => document.activeElement.dataset.action), "clear");
  await page.keyboard.press("Escape");
});

await runTests();
