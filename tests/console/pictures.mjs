// Takes the pictures of the documentation. Run by run_console.py. The shop runs for some minutes
// first, to fill the charts.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { action, ask, atEnd, newPage, open, options, row, runTests, show, test } from "./lib.mjs";

const kSeconds = Number(process.env.TUBED_PICTURE_SECONDS ?? 330);

test("pictures", async () => {
  mkdirSync(options.out, { recursive: true });
  await ask("shop");
  atEnd(() => ask("idle"));
  const page = await newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
  const phone = await newPage({ viewport: { width: 390, height: 780 }, colorScheme: "dark" });
  await open(page, "#/");
  await open(phone, "#/");
  await page.waitForFunction((seconds) => performance.now() > seconds * 1000, kSeconds,
    { timeout: (kSeconds + 60) * 1000, polling: 1000 });
  const picture = async (from, name) => {
    await from.mouse.move(5, 5);
    await from.screenshot({ path: join(options.out, `${name}.png`) });
  };
  await page.setViewportSize({ width: 1280, height: 958 });
  await page.waitForSelector("[data-chart=states] canvas");
  await page.waitForTimeout(1500);
  await picture(page, "console");
  await picture(phone, "console-phone");
  await page.setViewportSize({ width: 1280, height: 800 });

  await show(page, "#/tubes?sort=puts-per-second&order=desc");
  await page.waitForSelector(row("analytics"));
  for (const name of ["payments", "webhooks"]) await page.click(`${row(name)} ${action("pin")}`);
  await page.waitForTimeout(2500);
  await picture(page, "console-tubes");

  await show(page, "#/tubes/webhooks?state=buried");
  await page.waitForSelector("#table-jobs tr[data-key]");
  await page.click(action("preview"));
  await page.click("#table-jobs tr[data-key]:nth-of-type(5) td[data-column=age]");
  await page.waitForSelector("[data-preview] [data-format=json]");
  await page.waitForTimeout(1500);
  await picture(page, "console-tube");
});

await runTests();
