// Layers that lie on each other, and rows of the legend, can be told apart; and what is in the layer of the others can be
// shown.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, exported, json, picture, settled, sized, trace, withPage } from "./browser.mjs";

after(closeBrowser);

/** OKLab of a colour of sRGB, by Björn Ottosson's definition. */
function lab([red, green, blue]) {
  const [r, g, b] = [red, green, blue].map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}
const distance = (one, other) => Math.hypot(...lab(one).map((value, at) => value - lab(other)[at]));

/** The name and the colour of each row of the legend. */
const legend = (page) => page.locator(".legend li").evaluateAll((rows) => rows.map((row) => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  context.fillStyle = getComputedStyle(row.querySelector(".swatch")).backgroundColor;
  context.fillRect(0, 0, 1, 1);
  return { name: row.querySelector(".legend-name").textContent, colour: [...context.getImageData(0, 0, 1, 1).data].slice(0, 3) };
}));

const VIEWS = ["metric=peak", "metric=allocated", "metric=promoted", "metric=live&function=Json", "metric=allocated&layer=8", "metric=allocated&over=function", "metric=allocated&time=2000000-3000000"];

for (const theme of ["light", "dark"]) {
  test(`all layers differ clearly, ${theme}`, async () =>
    withPage(await exported("service.ctf"), { theme }, async (page) => {
      let compared = 0;
      for (const view of VIEWS) {
        await page.evaluate((view) => { location.hash = `overview&${view}`; }, view);
        await settled(page);
        const rows = await legend(page);
        for (const [at, one] of rows.entries()) {
          for (const other of rows.slice(at + 1)) {
            compared += 1;
            const apart = distance(one.colour, other.colour);
            assert.ok(apart > 0.055, `${view}: ${one.name} and ${other.name} are ${apart.toFixed(3)} apart`);
          }
        }
      }
      assert.ok(compared > 100, `${compared} pairs`);
    }));
}

test("the largest modules keep their colours, whatever is selected", async () =>
  withPage(await exported("service.ctf"), { fragment: "#overview&metric=peak" }, async (page) => {
    const before = new Map((await legend(page)).map(({ name, colour }) => [name, colour.join()]));
    await page.evaluate(() => { location.hash = "overview&metric=allocated&time=5000000-9000000"; });
    await settled(page);
    const same = (await legend(page)).filter(({ name }) => before.has(name) && !/others?$/.test(name));
    assert.ok(same.length > 3, `${same.length} rows`);
    for (const { name, colour } of same) assert.equal(colour.join(), before.get(name), name);
  }));

test("the layer of the others opens, and leads back", async () =>
  withPage(await exported("service.ctf"), { fragment: "#overview&metric=allocated" }, async (page) => {
    const report = await json("report", "--json", "--top", "0", "--by", "module", "--sites", "own", "--metric", "allocated", await trace("service.ctf"));
    const names = async () => (await legend(page)).map(({ name }) => name);
    const first = await names();
    assert.match(first.at(-1), /^\d+ others?$/);
    await page.locator(".legend").getByRole("button", { name: /others?$/ }).click();
    await settled(page);
    const second = await names();
    assert.deepEqual(second.slice(0, -1), report.table.rows.slice(8, 16).map(({ name }) => name));
    assert.ok((await page.locator(".legend").innerText()).replace(/\s+/g, " ").includes(sized(report.table.rows[8])));
    assert.match(await page.locator(".layer-pages").innerText(), new RegExp(`^9 – ${8 + second.length - 1} of ${report.table.rows.length}`));
    await picture(page, "others-open");
    await page.reload();
    await settled(page);
    assert.deepEqual(await names(), second, "a link keeps it");
    await page.getByRole("button", { name: "larger" }).click();
    await settled(page);
    assert.deepEqual(await names(), first);
  }));
