// The drawings of the documentation, docs/pictures/*.svg, as Chromium shows them, compared with the
// pictures in tests/console/rendering/. Run by run_console.py; with `--out DIRECTORY` it writes these
// pictures instead, to be looked at before they are stored.
//
// Another font may draw the same text a little differently (compare.mjs). The last test plants
// faults that a reader would see, and other fonts: these change 3 % of the cells, and the faults 13 %
// or more.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { difference } from "./compare.mjs";
import { eventually, newPage, options, runTests, test } from "./lib.mjs";

const kHere = dirname(fileURLToPath(import.meta.url));
const kStored = join(kHere, "rendering");
const kDrawings = join(kHere, "../../docs/pictures");
const kNames = ["top", "cpu", "latency", "memory"];
const kMostDifferent = 0.06;    // the share of the drawn cells
const drawing = (name) => readFileSync(join(kDrawings, `${name}.svg`), "utf8");

async function render(page, svg) {
  const source = Buffer.from(svg).toString("base64");
  await page.setContent(`<style>body { margin: 0 } img { display: block }</style>
    <img src="data:image/svg+xml;base64,${source}">`);
  const image = page.locator("img");
  await eventually(async () =>
    assert(await image.evaluate((element) => element.decode().then(() => element.naturalWidth > 0))));
  return image.screenshot();
}

for (const name of kNames) {
  test(`docs/pictures/${name}.svg is shown as it was`, async () => {
    const page = await newPage();
    const picture = await render(page, drawing(name));
    if (options.out) {
      mkdirSync(options.out, { recursive: true });
      writeFileSync(join(options.out, `${name}.png`), picture);
      return;
    }
    const share = await difference(page, picture, readFileSync(join(kStored, `${name}.png`)));
    console.log(`      ${(100 * share).toFixed(2)} % of the cells differ`);
    assert(share <= kMostDifferent, `${(100 * share).toFixed(1)} % of the cells differ`);
  });
}

const kGarbled = {
  "texts with blanks at their ends, of which some are lost": (svg) => svg
    .replaceAll(/<text x="([^"]*)"(.*) textLength="([^"]*)"(.*)>([0-9.]+)</g, (_, x, more, width, rest, text) =>
      `<text x="${x - 3 * 8.4}"${more} textLength="${Number(width) + 4 * 8.4}"${rest}>${text}<`),
  "texts at the place of others": (svg) => {
    const places = [...svg.matchAll(/<text x="[^"]*" y="[^"]*"/g)].map(([text]) => text);
    return svg.replaceAll(/<text x="[^"]*" y="[^"]*"/g, () => places.pop());
  },
  "a line over another": (svg) => svg.replaceAll('y="81.5"', 'y="99.5"'),
  "no text": (svg) => svg.replaceAll(/<text.*<\/text>/g, ""),
};
const kAlike = {
  "another font": (svg) => svg.replaceAll("DejaVu Sans Mono, ", "DejaVu Sans, "),
  "a font with serifs": (svg) => svg.replaceAll("DejaVu Sans Mono, ", "DejaVu Serif, "),
  "another weight": (svg) => svg.replaceAll('font-weight="bold"', ""),
};

test("garbled text is found, and another font is not taken for it", async () => {
  if (options.out) return;
  const page = await newPage();
  const stored = readFileSync(join(kStored, "top.png"));
  for (const [faults, isGarbled] of [[kGarbled, true], [kAlike, false]]) {
    for (const [what, change] of Object.entries(faults)) {
      const changed = change(drawing("top"));
      assert.notEqual(changed, drawing("top"), what);
      const share = await difference(page, await render(page, changed), stored);
      console.log(`      ${what}: ${(100 * share).toFixed(2)} %`);
      assert.equal(share > kMostDifferent, isGarbled, what);
    }
  }
});

await runTests();
