// The page says what its words mean, and where there is more to see.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, exported, picture, settled, withPage } from "./browser.mjs";

after(closeBrowser);

test("the help has the words of the page, and terms have their meaning as a title", async () =>
  withPage(await exported("service.ctf"), { fragment: "#table&metric=allocated" }, async (page) => {
    for (const [head, meaning] of [["self", /allocates itself/], ["total", /anywhere on the stack/], ["blocks", /estimated/]]) {
      assert.match(await page.locator("th").getByRole("button", { name: new RegExp(`^${head}`) }).getAttribute("title"), meaning);
    }
    await page.keyboard.press("?");
    const words = await page.locator("dialog .words dt").allInnerTexts();
    for (const word of ["own code", "self", "total", "promoted", "survived", "peak", "sample", "standard error (±)", "heap"]) assert.ok(words.includes(word), word);
    assert.match(await page.locator("dialog .words").innerText(), /minor heap is not in it/);
    await page.locator("#words").scrollIntoViewIfNeeded();
    await picture(page, "words");
  }));

test("a zoom of the flame can be taken back, and the tip follows it", async () =>
  withPage(await exported("service.ctf"), { fragment: "#flame&metric=allocated" }, async (page) => {
    const whole = page.getByRole("button", { name: "whole width" });
    const { x, y } = await page.locator(".icicle-box").boundingBox();
    await page.mouse.move(x + 200, y + 50);
    await page.locator(".tip").waitFor();
    assert.equal(await whole.count(), 0);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    await whole.waitFor();
    await settled(page);
    // Smaller cells have come by now: what follows changes the zoom only.
    await page.mouse.move(x + 202, y + 50);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -200);
    await page.keyboard.up("Control");
    await settled(page);
    const said = await page.locator(".tip").innerText();
    await page.mouse.move(x + 203, y + 50);
    assert.equal(await page.locator(".tip").innerText(), said, "it names the cell that is there now");
    await whole.click();
    await settled(page);
    assert.equal(await whole.count(), 0);
  }));

test("a link keeps the zoom of the flame, Back takes it back, and another flame is whole", async () =>
  withPage(await exported("service.ctf"), { fragment: "#flame&metric=allocated" }, async (page) => {
    const whole = page.getByRole("button", { name: "whole width" });
    const { x, y } = await page.locator(".icicle-box").boundingBox();
    await page.mouse.move(x + 200, y + 50);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    await page.waitForFunction(() => /across=\d+-\d+/.test(location.hash));
    await settled(page);
    await page.mouse.move(x + 201, y + 50);
    const said = await page.locator(".tip").innerText();
    const link = page.url();
    await page.goBack();
    await whole.waitFor({ state: "detached" });
    await page.goto("about:blank");
    await page.goto(link);
    await settled(page);
    await whole.waitFor();
    await page.mouse.move(x + 200, y + 50);
    await page.mouse.move(x + 201, y + 50);
    assert.equal(await page.locator(".tip").innerText(), said, "the same cell is there");
    await page.keyboard.press("i");
    await settled(page);
    assert.equal(await whole.count(), 0);
    assert.doesNotMatch(page.url(), /across/);
  }));

test("a flame that scrolls says how much is below", async () =>
  withPage(await exported("service.ctf"), { fragment: "#flame&metric=allocated" }, async (page) => {
    const more = page.locator(".rows-below");
    assert.equal(await more.count(), 0, "all rows are there");
    // As if the screen were low.
    await page.locator(".icicle-box").evaluate((box) => { box.style.maxHeight = "60px"; });
    await more.waitFor();
    assert.match(await more.innerText(), /^▾ \d+ more rows?$/);
    await page.locator(".icicle-box").evaluate((box) => { box.scrollTop = box.scrollHeight; });
    await more.waitFor({ state: "detached" });
  }));
