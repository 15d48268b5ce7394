// The page while the traced program runs: it keeps up, can be stopped, and survives the end of the
// program, another trace of the same name, and a server that is started again. One page sees it all,
// since a start of the browser takes longer than most of it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, closeSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { closeBrowser, directory, fragment, json, picture, settled, sized, startServer, trace, withPage } from "./browser.mjs";

after(closeBrowser);

/** Where the first packet says that the trace is unfinished, and how (crates/trace, `Completion`). */
const MARK = { offset: 24, unfinished: 1 };

/** The bytes of a trace whose writer has not finished it. */
function unfinished(bytes) {
  const copy = Buffer.from(bytes);
  copy.writeUInt32LE(MARK.unfinished, MARK.offset);
  return copy;
}

/** A process that has the file open, as its writer has. */
function pretendedWriter(path) {
  const file = openSync(path, "r+");
  const child = spawn("sleep", ["600"], { stdio: ["ignore", "ignore", "ignore", file] });
  closeSync(file);
  return child;
}

const text = (page, selector) => page.locator(selector).first().innerText();

/** Waits until an element says something. */
async function says(page, selector, pattern) {
  await page.locator(selector).filter({ hasText: pattern }).first().waitFor();
}

/** How long the trace in view lasts. */
const seconds = async (page) => Number.parseFloat(await text(page, ".facts span"));

/** Waits until it lasts longer. The packets of the trace are some four seconds apart. */
async function grows(page, old) {
  await page.waitForFunction((old) => Number.parseFloat(document.querySelector(".facts span").textContent) > old, old);
}

test("a page follows the program through all that happens to it", async () => {
  const place = directory("live");
  const path = `${place}/grows.ctf`;
  const whole = unfinished(readFileSync(await trace("service.ctf")));
  const part = (from, to) => whole.subarray(Math.floor(from * whole.length), Math.floor(to * whole.length));
  writeFileSync(path, part(0, 0.2));
  const writer = pretendedWriter(path);
  const token = ["--token-file", `${place}/token`];
  let server = await startServer(["--live", String(writer.pid), ...token]);
  const port = new URL(server.address).port;
  try {
    const expected = /ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/;
    await withPage(server.address, { fragment: "#table&metric=live&by=function&function=Session", requests: "own", expected }, async (page) => {
      await says(page, ".live", /^live/);
      const first = await seconds(page);
      assert.ok(first > 2 && first < 8, `${first} s of 20`);
      assert.match(await page.locator("#metric option:checked").innerText(), /Live now/);
      const rows = await page.locator("tbody tr").allInnerTexts();
      // Beside its name, which is a button and takes Space.
      await page.locator("tbody td.num").first().click();
      // The address follows a little later.
      await page.waitForFunction(() => location.hash.includes("row="));
      const view = await fragment(page);

      appendFileSync(path, part(0.2, 0.4));
      await grows(page, first);
      await settled(page);
      assert.equal(await fragment(page), view, "filter and row stay");
      assert.notDeepEqual(await page.locator("tbody tr").allInnerTexts(), rows, "the figures are new");
      await picture(page, "live");

      await page.keyboard.press("Space");
      await says(page, ".live", /^paused/);
      const stopped = await seconds(page);
      appendFileSync(path, part(0.4, 0.6));
      await page.waitForTimeout(1500);
      assert.equal(await seconds(page), stopped);
      await page.locator("#pause").click();
      await grows(page, stopped);

      // An earlier moment stays in view while the trace grows.
      const line = await page.locator(".brush").boundingBox();
      await page.mouse.click(line.x + line.width / 2, line.y + line.height / 2);
      await settled(page);
      const moment = /at=(\d+)/.exec(await fragment(page))[1];
      const before = await seconds(page);
      // So does a part of the run that is enlarged, of a longer one.
      await page.keyboard.press("+");
      await page.waitForFunction(() => /zoom=/.test(location.hash));
      await settled(page);
      const zoom = async () => /zoom=[\d-]+/.exec(await fragment(page))?.[0];
      const width = () => page.locator(".zoom-part").evaluate((part) => part.getBoundingClientRect().width);
      const [enlarged, wide] = [await zoom(), await width()];
      appendFileSync(path, part(0.6, 0.8));
      await grows(page, before);
      await settled(page);
      assert.equal(/at=(\d+)/.exec(await fragment(page))[1], moment);
      assert.equal(await zoom(), enlarged);
      assert.ok((await width()) < wide, "it is a smaller part of the run");
      await picture(page, "live-zoom");
      await page.keyboard.press("0");
      await page.locator(".zoom-strip").waitFor({ state: "detached" });

      await server.stop();
      await says(page, ".live", /connection lost: trying again/);
      await picture(page, "live-lost");
      appendFileSync(path, part(0.8, 1));
      server = await startServer(["--live", String(writer.pid), "--port", port, ...token]);
      await says(page, ".live", /^live/);
      await grows(page, 19);

      // The program is started again, and writes under the same name.
      renameSync(path, `${place}/old.ctf`);
      const other = unfinished(readFileSync(await trace("crates/trace/tests/data/made-maps.v2.ctf")));
      writeFileSync(path, other.subarray(0, other.length - 7));
      await says(page, ".notice", /Another trace has taken the name of grows\.ctf/);
      await page.waitForFunction(() => !/at=/.test(location.hash));

      writer.kill("SIGKILL");
      await says(page, ".live", /the program was killed/);
      await says(page, ".notice", /cut short/);
      await settled(page);
      const cut = (await page.locator(".notice").allInnerTexts()).filter((notice) => /cut short/.test(notice));
      assert.equal(cut.length, 1, `said once, not ${JSON.stringify(cut)}`);
      await page.evaluate(() => { location.hash = "table&metric=allocated&by=function"; });
      await settled(page);
      const { table } = await json("report", "--json", "--sites", "own", "--metric", "allocated", path);
      const shown = (await text(page, "tbody tr")).replace(/\s+/g, " ");
      assert.ok(shown.includes(sized(table.rows[0])), `${shown} is not ${sized(table.rows[0])}`);
      await picture(page, "live-killed");
    });
  } finally {
    writer.kill("SIGKILL");
    await server.stop();
  }
});
