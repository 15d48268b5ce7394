// Every width, both themes, and assistive technology.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, exported, picture, settled, withPage } from "./browser.mjs";
import { accessible, within } from "./looks.mjs";

after(closeBrowser);

const VIEWS = [
  "#overview", "#overview&multiples=1", "#flame&metric=allocated&selected=login@label/Server.main@src%2Fserver.ml", "#flame&search=json&invert=1",
  "#table&row=Json.token@src%2Fjson.ml&metric=allocated&function=Json", "#table&hot=1&metric=allocated", "#table&order=total&find=json&metric=allocated", "#overview&layer=8&metric=allocated", "#leaks",
  "#overview&zoom=9000000-9050000", "#heat&metric=allocated&by=module&row=Json", "#heat&zoom=2000000-9000000", "#diff&trace=1&before=0&metric=allocated", "#diff&trace=1&before=0&metric=allocated&rows=1", "#source&metric=allocated",
];

const PAGE = () => exported("before.ctf", "service.ctf");
const VIEWED = VIEWS.map((fragment) => (fragment.includes("trace=") ? fragment : `${fragment}&trace=1`));

for (const theme of ["light", "dark"]) {
  test(`axe-core has no finding in the ${theme} theme`, async () => accessible(await PAGE(), VIEWED, theme, `axe-${theme}`));
}

// A phone, 60 columns of text, and a wide screen.
for (const [width, height] of [[360, 740], [480, 800], [820, 1100], [1920, 1080]]) {
  test(`nothing overflows at ${width} pixels`, async () => within(await PAGE(), VIEWED, { width, height }, `width-${width}`));
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
