// The lines above the views: one each, dismissed for the session, and of one mind with the head.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, exported, picture, serve, settled, trace, traceOf, withPage } from "./browser.mjs";

after(closeBrowser);

/** A trace whose end is missing. */
async function cut() {
  const whole = readFileSync(await trace("service.ctf"));
  return traceOf("cut.ctf", whole.subarray(0, Math.floor(whole.length * 0.6)));
}

const text = (page, selector) => page.locator(selector).first().innerText();
/** Every number of blocks that is said anywhere. */
const oneIn = async (page, selector) => [...(await page.locator(selector).allInnerTexts()).join(" ").matchAll(/one in ([\d,]+)/g)].map(([, number]) => number);

test("the head and the notes say one thing about how many blocks count", async () =>
  serve(["--blocks", "2000", await trace("service.ctf")], (address) =>
    withPage(address, { fragment: "#table&metric=live", requests: "own" }, async (page) => {
      assert.match(await text(page, ".facts"), /every block followed/);
      assert.match(await text(page, ".notes"), /^These figures are those of all blocks\. With a filter/);
      const [kept] = await oneIn(page, ".notes");
      await page.evaluate(() => { location.hash = "table&metric=live&domain=1"; });
      await settled(page);
      assert.match(await text(page, ".notes"), /^These figures come from one in/);
      assert.deepEqual(await oneIn(page, ".notes, .facts"), [kept, kept]);
      await picture(page, "notes-filter");
      await page.locator("#exact").click();
      await settled(page);
      assert.match(await text(page, ".facts"), /full reading/);
      assert.deepEqual(await oneIn(page, ".notes, .facts"), [], "nothing is thinned any more");
      await page.locator("#exact").click();
      await settled(page);
      assert.deepEqual(await oneIn(page, ".notes, .facts"), [kept, kept]);
    })));

for (const width of [1280, 400]) {
  test(`a note is one line at ${width} pixels, and stays dismissed in this session`, async () =>
    withPage(await exported(await cut()), { width }, async (page) => {
      const notes = page.locator(".notice");
      assert.equal(await notes.count(), 1);
      assert.ok((await notes.boundingBox()).height < 40, `${(await notes.boundingBox()).height} pixels`);
      const opens = notes.getByRole("button", { name: "more" });
      if (await opens.count()) {
        await opens.click();
        assert.ok((await notes.boundingBox()).height > 40, "all of it can be read");
      }
      await page.getByRole("button", { name: "Dismiss" }).click();
      assert.equal(await notes.count(), 0);
      await page.reload();
      await settled(page);
      assert.equal(await notes.count(), 0);
    }));
}
