// Figures of the console with 10,000 tubes, for bench/measure/console.py: the first paint, the first
// rows, and the longest tasks of a page whose tubes all change each second. Prints a line "WHAT: NUMBER ms" for
// each, and fails only if it cannot measure. Run by run_console.py.

import assert from "node:assert/strict";

import { ask, atEnd, facts, launch, newPage, open, runTests, show, test } from "./lib.mjs";

const kRows = "#table-tubes tr[data-key]";

function figure(what, milliseconds) {
  console.log(`      ${what}: ${milliseconds.toPrecision(4)} ms`);
}

test("the first paint", async () => {
  for (let round = 0; round < 3; ++round) {
    const page = await newPage();
    await open(page, "#/");
    const [paint] = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")
      .map(({ startTime }) => startTime));
    figure("the first paint", paint);
    await page.context().close();
  }
});

// From the start of the navigation to the first frame with rows of the tubes.
test("the first rows of 10,000 tubes", async () => {
  for (let round = 0; round < 3; ++round) {
    const page = await newPage();
    await page.addInitScript((rows) => {
      const look = () => {
        if (document.querySelector(rows)) globalThis.firstRows = performance.now();
        else requestAnimationFrame(look);
      };
      look();
    }, kRows);
    await open(page, "#/tubes");
    await page.waitForFunction(() => globalThis.firstRows !== undefined);
    figure("the first rows", await page.evaluate(() => globalThis.firstRows));
    await page.context().close();
  }
});

// The longest task of the page's main thread, in ms of processor time, while `during` runs and
// three seconds pass. Elapsed time would include the time of other processes, and be several times
// as long on a machine that compiles meanwhile; on an idle machine, both are the same.
async function longestTask(page, during) {
  const tracing = await launch();
  await tracing.startTracing(page, { categories: ["toplevel", "__metadata"] });
  const begin = await page.evaluate(() => performance.now());
  await during?.();
  await page.waitForFunction((start) => performance.now() - start > 3000, begin);
  const { traceEvents } = JSON.parse(await tracing.stopTracing());
  const thread = ({ pid, tid }) => `${pid} ${tid}`;
  const mains = new Set(traceEvents.filter(({ name, args }) => name === "thread_name"
    && args.name === "CrRendererMain").map(thread));
  const tasks = traceEvents.filter((event) => event.name.endsWith("::RunTask") && mains.has(thread(event)));
  assert(tasks.length > 100, `${tasks.length} tasks`);
  return Math.max(...tasks.map(({ tdur }) => tdur ?? 0)) / 1000;
}

test("the longest tasks", async () => {
  await ask(`load?${facts.bulk.tubes}`);
  atEnd(() => ask("idle"));
  const page = await newPage();
  await open(page, "#/");
  // A planted task is found. It takes a second, of which a busy machine gives it only a part of the
  // processor.
  const planted = await longestTask(page, () => page.evaluate(() => {
    setTimeout(() => {
      const end = performance.now() + 1000;
      while (performance.now() < end);
    });
  }));
  figure("a planted task of a second, processor time", planted);
  for (const [hash, present] of [["#/", "[data-chart=rates] canvas"],
    ["#/tubes?sort=ready&order=desc", kRows], ["#/tubes/mail?state=buried", "#table-jobs tr[data-key]"]]) {
    await show(page, hash);
    await page.waitForSelector(present);
    figure(`the longest task of ${hash}, processor time`, await longestTask(page));
  }
  await show(page, "#/tubes?sort=total&order=desc");
  await page.waitForSelector(kRows);
  figure("the same while the page is scrolled and searched", await longestTask(page, async () => {
    for (let i = 1; i <= 10; ++i) {
      await page.mouse.wheel(0, 3000);
      await page.fill("[data-search]", i % 2 ? `bulk-0${i}` : "");
    }
  }));
});

await runTests();
