// The tasks of docs/console.md, performed as printed. Run by run_console.py --fill empty.
//
// The section "Tasks" of the page has a subsection for each task, with one numbered list or
// several. Each step of a list consists of these sentences, and of no others:
//
//   Click **LABEL**.                 a link, a button or the head of a column, by its label; a
//                                    number after the label does not matter
//   Click `TEXT`.                    a link or a button that shows this name of a tube
//   Click the first **LABEL**.       the link in the first row of the column LABEL
//   Click the name in **LABEL**.     the link next to the number LABEL
//   Type `TEXT` into **LABEL**.      a field, by its label
//   Press `KEY`.
//   Read **LABEL**.                  a number, a panel, the first row of a column, or the number
//                                    in a link; also "Read **A**, **B** and **C**."
//   It shows `TEXT`.                 of what was read last; also "begins with" and "contains"
//   If it shows `TEXT`, WORDS.       also "does not show", "begins with" and "contains"
//
// The sentences with Click, Type, Press and Read may end in " to WORDS", which has the purpose. A
// click applies to the dialog if one is open. A label must be visible, and at one place only, unless
// all places are links to the same address. A step waits until its label is visible.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { api, atEnd, becomes, Client, eventually, get, hashOf, jobState, newPage, open, put, runTests, test,
  tubeStats, until } from "./lib.mjs";

const kPage = new URL("../../docs/console.md", import.meta.url);
const kTube = "orders";   // of the page
const kStates = ["ready", "delayed", "buried", "reserved"];

// --- reading the page

const kLabel = "\\*\\*([^*]+)\\*\\*";
const kText = "`([^`]+)`";
const kPurpose = "(?: to [^*`.]+)?";
const sentence = (pattern) => new RegExp(`^${pattern}\\.(?: |$)`);

// The sentences, as [pattern, function that performs it]. Each function gets the run of a task and
// what the pattern has captured.
const kSentences = [
  [sentence(`Click ${kLabel}${kPurpose}`), (run, label) => run.click("label", label)],
  [sentence(`Click ${kText}${kPurpose}`), (run, text) => run.click("text", text)],
  [sentence(`Click the first ${kLabel}${kPurpose}`), (run, label) => run.click("first", label)],
  [sentence(`Click the name in ${kLabel}${kPurpose}`), (run, label) => run.click("name", label)],
  [sentence(`Type ${kText} into ${kLabel}${kPurpose}`), (run, text, label) => run.type(text, label)],
  [sentence(`Press ${kText}${kPurpose}`), (run, key) => run.page.keyboard.press(key)],
  [sentence(`Read (${kLabel}(?:(?:, ${kLabel})* and ${kLabel})?)${kPurpose}`), (run, labels) => run.read(labels)],
  [sentence(`It (shows|begins with|contains) ${kText}`), (run, relation, text) => run.expect(relation, text)],
  [sentence(`If it (shows|does not show|begins with|contains) ${kText}, ([^*\`.]+)`),
    (run, relation, text, words) => run.conclude(relation, text, words)],
];

// Returns the sentences of a step, as {text, perform(run)}.
function sentencesOf(step) {
  const found = [];
  for (let rest = step; rest !== "";) {
    const matches = kSentences.map(([pattern, perform]) => [pattern.exec(rest), perform]);
    const [match, perform] = matches.find(([each]) => each) ?? [];
    assert(match, `docs/console.md: no sentence of a task: ${rest}`);
    const captured = match.slice(1);
    found.push({ text: match[0].trim(), perform: (run) => perform(run, ...captured) });
    rest = rest.slice(match[0].length);
  }
  assert(found.length > 0, "docs/console.md: an empty step");
  return found;
}

// Returns the steps of each numbered list.
function listsOf(text) {
  const lists = [];
  let list = null;
  for (const line of text.split("\n")) {
    const [, number, step] = /^(\d+)\. (.*)$/.exec(line) ?? [];
    if (number) {
      if (!list) lists.push(list = []);
      assert.equal(Number(number), list.length + 1, `docs/console.md: the number of the step: ${line}`);
      list.push(step);
    } else if (list && /^ +\S/.test(line)) {
      list[list.length - 1] += ` ${line.trim()}`;
    } else {
      list = null;
    }
  }
  return lists;
}

// Returns the lists of each task, as {title: [[[sentence, ...], ...], ...]}.
function tasksOf(markdown) {
  const [section] = /^## Tasks\n[^]*?(?=^## )/m.exec(markdown) ?? [];
  assert(section, "docs/console.md has no section Tasks");
  const parts = section.split(/^### /m).slice(1);
  return Object.fromEntries(parts.map((part) => {
    const end = part.indexOf("\n");
    return [part.slice(0, end), listsOf(part.slice(end)).map((steps) => steps.map(sentencesOf))];
  }));
}

const tasks = tasksOf(readFileSync(kPage, "utf8"));

// --- performing it

// Returns, in the page, the element that a step names, and fails unless there is exactly one.
function findInPage({ what, label }) {
  const isVisible = (each) => each.checkVisibility({ checkVisibilityCSS: true });
  const scope = document.querySelector("dialog[open]") ?? document.body;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)].filter(isVisible);
  const textOf = (each) => each.getAttribute("aria-label") ?? each.textContent.trim();
  const isLabel = (text) => text === label
    || (text.startsWith(label) && /^ ?[\d,]+$/.test(text.slice(label.length)));
  const columns = () => all("th[data-column]").filter((each) => each.textContent.trim() === label);
  const firstCells = () => columns().map((each) =>
    each.closest("table").querySelector(`tr[data-key] td[data-column="${each.dataset.column}"]`)).filter(Boolean);
  const terms = () => all("dt").filter((each) => each.textContent.trim() === label);
  const finders = {
    label: () => all("a, button, summary", scope).filter((each) => isLabel(textOf(each))),
    text: () => all("a, button", scope).filter((each) => textOf(each) === label),
    first: () => firstCells().flatMap((each) => [...each.querySelectorAll("a")]),
    field: () => all("input, textarea", scope).filter((each) =>
      (each.getAttribute("aria-label") ?? each.labels[0]?.textContent) === label),
    name: () => terms().flatMap((each) => all("a", each.parentNode)),
    value: () => [...terms().map((each) => each.nextElementSibling), ...firstCells(),
      ...all("h2").filter((each) => each.textContent.trim() === label).map((each) => each.parentNode),
      ...all("a[data-state]").filter((each) => isLabel(each.textContent.trim()))],
  };
  const found = finders[what]();
  const isSame = found.length > 0 && found[0].href && found.every((each) => each.href === found[0].href);
  if (found.length !== 1 && !isSame) throw new Error(`${found.length} places have the label ${label}`);
  return found[0];
}

async function find(page, what, label) {
  const handle = await page.evaluateHandle(findInPage, { what, label });
  return handle.asElement();
}

const kRelations = {
  shows: (value, text) => value === text,
  "does not show": (value, text) => value !== text,
  "begins with": (value, text) => value.startsWith(text),
  contains: (value, text) => value.includes(text),
};

// The run of a task on a page: `values` has what was read, `concluded` the labels whose conditions
// were true, in their order.
class Run {
  values = {};
  concluded = [];

  constructor(page) {
    this.page = page;
  }

  async perform(list) {
    for (const [i, step] of list.entries()) {
      for (const { text, perform } of step) {
        await perform(this).catch((error) => {
          throw new Error(`step ${i + 1}: ${text}: ${error.message}`, { cause: error });
        });
      }
    }
  }

  async click(what, label) {
    const found = await until(`"${label}" to be clicked`, async () => {
      const element = await find(this.page, what, label);
      const state = await element.evaluate((each) => ({
        hash: each.closest("a")?.hash, column: each.closest("th")?.dataset.column }));
      await element.click();
      return state;
    });
    // The click has its effect once the page shows the new address.
    await until("the new view", () => this.page.evaluate(({ hash, column }) =>
      globalThis.routedHash === location.hash && (!hash || hash === location.hash)
        && (!column || document.querySelector(`th[data-column="${column}"][aria-sort]`)), found));
  }

  async type(text, label) {
    await until(`the field "${label}"`, async () => {
      await (await find(this.page, "field", label)).fill(text);
      return true;
    });
  }

  async read(labels) {
    for (const [, label] of labels.matchAll(/\*\*([^*]+)\*\*/g)) {
      this.label = label;
      this.values[label] = await until(`a value of "${label}"`, () => this.#valueOf(label));
    }
  }

  // Returns "" while the page does not know the value.
  async #valueOf(label) {
    const element = await find(this.page, "value", label);
    const value = await element.evaluate((each, heading) => {
      if (each.matches("dd, td")) return each.textContent.trim();
      const panel = each.cloneNode(true);
      for (const button of panel.querySelectorAll("button")) button.remove();
      return panel.textContent.trim().slice(heading.length).trim();
    }, label);
    return ["–", "…", "Loading."].includes(value) ? "" : value;
  }

  async expect(relation, text) {
    await until(`"${this.label}" to be as "${relation} ${text}" says`, async () =>
      kRelations[relation](await this.#valueOf(this.label), text));
  }

  async conclude(relation, text) {
    if (kRelations[relation](this.values[this.label], text)) this.concluded.push(this.label);
  }
}

// Opens the console, whose page notes the address of the view that it shows.
async function begin() {
  const page = await newPage();
  await page.addInitScript(() => {
    globalThis.routedHash = location.hash;
    addEventListener("hashchange", () => {
      globalThis.routedHash = location.hash;
    });
  });
  await open(page, "#/");
  return new Run(page);
}

const kPerformed = new Set();

// Adds a test of the task with this title, which has as many lists.
function testTask(title, count, run) {
  kPerformed.add(title);
  test(title, async () => {
    const lists = tasks[title];
    assert(lists, `docs/console.md has no task "${title}"`);
    assert.equal(lists.length, count, "the number of its lists");
    await run(...lists);
  });
}

// --- the jobs of the tasks

async function connect() {
  const client = await Client.connect();
  atEnd(() => client.close());
  return client;
}

// Removes all jobs, and the pause of the tube.
async function empty() {
  for (let from = 0; ;) {
    const { tubes, next } = await get(`/tubes?from=${from}`);
    for (const { name } of tubes) {
      for (const state of kStates) {
        await api("POST", `/tubes/${name}/clear`, { state });
      }
      await api("POST", `/tubes/${name}/pause`, { delay: 0 });
    }
    if (next === 0) break;
    from = next;
  }
  const stats = await get("/server");
  for (const state of kStates) assert.equal(stats[`current-jobs-${state}`], 0, state);
}

async function bury(client, id) {
  await client.reserve(`reserve-job ${id}`);
  assert.equal(await client.ask(`bury ${id} 1024`), "BURIED");
}

// Waits until a job that is put now is younger, by more than the server rounds.
function grows(id) {
  return until("the job to be older", async () => (await get(`/jobs/${id}`)).age >= 3);
}

// Other tubes, with some jobs in each state.
async function fillOthers(client) {
  for (const name of ["mail", "mail-orders", "resize"]) {
    await put(name, "ready");
    await put(name, "delayed", "?delay=86400");
    await bury(client, await put(name, "buried"));
  }
}

// --- the tests

testTask("Find the job that failed an hour ago", 1, async (steps) => {
  await empty();
  const client = await connect();
  const id = await put(kTube, "{\"order\": 4711}", "?ttr=60");
  await bury(client, id);
  await grows(id);
  await fillOthers(client);
  for (let i = 0; i < 3; ++i) await bury(client, await put(kTube, `{"order": ${4712 + i}}`));
  await put(kTube, "ready");
  const run = await begin();
  await run.perform(steps);
  assert.equal(hashOf(run.page), `#/jobs/${id}`);
  const { Body: body, age, reserves, timeouts, releases, buries } = run.values;
  assert.match(body, /4711/);
  assert.match(age, /^\d+ (s|min).* · \d+ \w+, \d\d:\d\d:\d\d$/);
  assert.deepEqual({ reserves, timeouts, releases, buries },
    { reserves: "1", timeouts: "0", releases: "0", buries: "1" });
});

// Each cause: what makes the jobs, and the labels that show it.
const kWorkers = "Watching / waiting / using";
const kCauses = {
  "it is paused": [async (worker) => {
    assert.equal(await worker.ask(`pause-tube ${kTube} 86400`), "PAUSED");
    worker.socket.write("reserve\r\n");
    await put(kTube, "one");
  }, ["Pause"]],
  "it has no workers": [async (worker) => {
    assert.equal(await worker.ask("watch default"), "WATCHING 2");
    assert.equal(await worker.ask(`ignore ${kTube}`), "WATCHING 1");
    worker.socket.write("reserve\r\n");
    await put(kTube, "one");
  }, [kWorkers, kWorkers]],
  "all workers are busy with other jobs": [async (worker) => {
    assert.equal(await worker.ask("watch mail"), "WATCHING 2");
    await put(kTube, "one");
  }, [kWorkers]],
  "workers hold all its jobs": [async (worker) => {
    await put(kTube, "one", "?ttr=86400");
    await worker.reserve();
  }, [kWorkers, "ready", "reserved"]],
  "its jobs are delayed": [async (worker) => {
    worker.socket.write("reserve\r\n");
    await put(kTube, "one", "?delay=86400");
  }, ["ready", "delayed"]],
  "its jobs are buried": [async (worker) => {
    await bury(worker, await put(kTube, "one"));
    worker.socket.write("reserve\r\n");
  }, ["ready", "buried"]],
};

testTask("Find out why a tube does not move", 1, async (steps) => {
  for (const [cause, [make, labels]] of Object.entries(kCauses)) {
    await empty();
    await fillOthers(await connect());
    const worker = await connect();
    await worker.watchOnly(kTube);
    await make(worker);
    // A reserve that waits is known once the server has read it.
    if (!labels.includes(kWorkers)) {
      await becomes("workers that wait", async () => (await tubeStats(kTube))["current-waiting"], 1);
    }
    const run = await begin();
    await run.perform(steps);
    assert.equal(hashOf(run.page).split("?")[0], `#/tubes/${kTube}`);
    assert.deepEqual(run.concluded, labels, cause);
    await run.page.close();
    worker.close();
    await becomes("the connection's end", async () => (await tubeStats(kTube))["current-watching"] ?? 0, 0);
  }
});

testTask("See who holds a job", 1, async (steps) => {
  await empty();
  const client = await connect();
  await fillOthers(client);
  const id = await put(kTube, "held", "?ttr=86400");
  await put(kTube, "ready");
  const holder = await connect();
  await holder.watchOnly(kTube);
  assert.equal((await holder.reserve()).id, id);
  const idle = await connect();
  await idle.watchOnly(kTube);
  const run = await begin();
  await run.perform(steps);
  await eventually(async () => assert.equal(await jobState(id), "reserved"));
  assert.match(run.values["time-left"], /^(1 d|23 h.*)$/);
  assert.equal(run.values.Address, `127.0.0.1:${holder.socket.localPort}`);
  assert.equal(run.values["Held jobs"], "1");
});

testTask("Find the oldest job of the server", 1, async (steps) => {
  await empty();
  const client = await connect();
  const id = await put("reports", "the oldest");
  await grows(id);
  await put("reports", "urgent", "?pri=1");
  await fillOthers(client);
  await put(kTube, "new");
  const run = await begin();
  // The first numbers of a page may be those of the second before.
  await becomes("the tube", () => run.page.textContent("[data-tile=oldest] .tile-note"), "reports");
  await run.perform(steps);
  assert.equal(hashOf(run.page), `#/jobs/${id}`);
  assert.match(run.values["Oldest ready"], /^\d+ (s|min)/);
  assert.match(run.values.age, /^\d+ (s|min)/);
});

testTask("Stop a tube for ten minutes, and start it again", 2, async (stop, start) => {
  await empty();
  await fillOthers(await connect());
  await put(kTube, "ready");
  const run = await begin();
  await run.perform(stop);
  const stats = await tubeStats(kTube);
  assert.equal(stats.pause, 600);
  assert(stats["pause-time-left"] > 0);
  await run.perform(start);
  await eventually(async () => assert.equal((await tubeStats(kTube))["pause-time-left"], 0));
});

test("each task of the page is performed", async () => {
  assert.deepEqual(Object.keys(tasks), [...kPerformed]);
});

test("a sentence of another form, and a wrong number of a step, are refused", async () => {
  const page = (step) => `## Tasks\n\n### A task\n\n${step}\n\n## Views\n`;
  assert.equal(tasksOf(page("1. Click **Tubes**.\n2. Press `t`\n   to see more."))["A task"][0].length, 2);
  for (const step of ["Open **Tubes**.", "Click Tubes.", "Click **Tubes**", "Click **Tubes**. Wait.",
    "Click **Tubes** and **Clients**.", "Type orders into **Search tubes**.", "Read `age`.", "It is `0`.",
    "If it shows `0`, click **Pause**.", ""]) {
    assert.throws(() => tasksOf(page(`1. ${step}`)), /docs\/console\.md: /, step);
  }
  assert.throws(() => tasksOf(page("1. Click **Tubes**.\n3. Press `t`.")), /the number of the step/);
});

test("a label that the console lacks, or has twice, is not found", async () => {
  await empty();
  await put(kTube, "ready");
  const { page } = await begin();
  await open(page, `#/tubes/${kTube}`);
  await until("the jobs", () => find(page, "first", "Id"));
  await find(page, "label", "Pause…");
  await find(page, "label", "ready");
  await find(page, "field", "Search the bodies of the jobs");
  await find(page, "value", "Pause");
  for (const [what, label] of [["label", "Pause"], ["label", "pause…"], ["label", "read"], ["text", "ready"],
    ["first", "Address"], ["name", "Pause"], ["field", "Search"], ["value", "Paused"]]) {
    await assert.rejects(find(page, what, label), /0 places/, label);
  }
  await assert.rejects(find(page, "value", "Timeouts"), /2 places/);
});

await runTests();
