// Every width, both themes, and assistive technology.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { closeBrowser, exported, picture, settled, withPage } from "./browser.mjs";

after(closeBrowser);

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = [
  "#overview", "#overview&multiples=1", "#flame&metric=allocated&selected=login@label/Server.main@src%2Fserver.ml", "#flame&search=json&invert=1",
  "#table&row=Json.token@src%2Fjson.ml&metric=allocated&function=Json", "#table&hot=1&metric=allocated", "#leaks", "#diff&trace=1&before=0&metric=allocated", "#diff&trace=1&before=0&metric=allocated&rows=1", "#source&metric=allocated",
];

for (const theme of ["light", "dark"]) {
  test(`axe-core has no finding in the ${theme} theme`, async () => {
    for (const fragment of VIEWS) {
      await withPage(await exported("before.ctf", "service.ctf"), { fragment: fragment.includes("trace=") ? fragment : `${fragment}&trace=1`, theme }, async (page) => {
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        const found = violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" ")}`);
        assert.deepEqual(found, [], fragment);
        await picture(page, `axe-${theme}-${fragment.replace(/\W+/g, "-").slice(0, 40)}`);
      });
    }
  });
}

// A phone, 60 columns of text, and a wide screen.
for (const [width, height] of [[360, 740], [480, 800], [820, 1100], [1920, 1080]]) {
  test(`nothing overflows at ${width} pixels`, async () => {
    for (const fragment of VIEWS) {
      await withPage(await exported("before.ctf", "service.ctf"), { fragment: fragment.includes("trace=") ? fragment : `${fragment}&trace=1`, width, height }, async (page) => {
        const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(inner <= outer, `${fragment}: ${inner} of ${outer} pixels`);
        await picture(page, `width-${width}-${fragment.replace(/\W+/g, "-").slice(0, 40)}`);
      });
    }
  });
}

test("everything that can be clicked can be reached by Tab", async () =>
  withPage(await exported("service.ctf"), {}, async (page) => {
    const missed = await page.evaluate(() =>
      [...document.querySelectorAll("button, select, input, a[href], [role=slider], [role=tree]")]
        .filter((element) => element.checkVisibility() && element.tabIndex < 0)
        .map((element) => element.outerHTML.slice(0, 80)));
    assert.deepEqual(missed, []);
    await page.keyboard.press("Tab");
    assert.notEqual(await page.evaluate(() => document.activeElement?.tagName), "BODY");
  }));

test("a touch selects a frame and shows its size", async () =>
  withPage(await exported("service.ctf"), { fragment: "#overview&metric=allocated", width: 390, height: 800, hasTouch: true, isMobile: true }, async (page) => {
    const box = page.locator(".icicle-box");
    await box.scrollIntoViewIfNeeded();
    const { x, y } = await box.boundingBox();
    await page.touchscreen.tap(x + 60, y + 50);
    await settled(page);
    assert.match(await page.locator(".selected-cell").innerText(), /± [\d.]+ %/);
    await picture(page, "touch");
  }));
