// How views look to people with a narrow screen, and to those who cannot see it. One page is led from view to view by
// its address, as links do: loading it for each would take most of the time.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { picture, settled, withPage } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** `prepare`: what is done in each view before it is looked at. */
async function eachView(address, views, { prepare, ...options }, name, look) {
  await withPage(address, { fragment: views[0], ...options }, async (page) => {
    for (const view of views) {
      await page.evaluate((fragment) => { location.hash = fragment; }, view);
      await settled(page);
      await prepare?.(page);
      await look(page, view);
      await picture(page, `${name}-${view.replace(/\W+/g, "-").slice(0, 40)}`);
    }
  });
}

/** axe-core has no finding in any of the views. */
export function accessible(address, views, theme, name, prepare = undefined) {
  return eachView(address, views, { theme, prepare }, name, async (page, view) => {
    if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const found = violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" ")}`);
    assert.deepEqual(found, [], view);
  });
}

/** No view is wider than the screen. */
export function within(address, views, size, name) {
  return eachView(address, views, size, name, async (page, view) => {
    const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(inner <= outer, `${view}: ${inner} of ${outer} pixels`);
  });
}
