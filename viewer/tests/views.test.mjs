// What a person sees and does: first sight, brush, drill-down, focus, search, chips, keys, links.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, exported, fragment, json, picture, settled, sized, trace, treeItems, withPage } from "./browser.mjs";

after(closeBrowser);

const service = await exported("service.ctf");
const open = (fragment, body, options = {}) => withPage(service, { fragment, ...options }, body);
const text = (page, selector) => page.locator(selector).first().innerText();

test("first sight: the verdict, the figures of the command line, the time line by module, the tree at the peak", () =>
  open("", async (page) => {
    const path = await trace("service.ctf");
    const report = await json("report", "--json", "--by", "module", "--metric", "peak", "--top", "8", path);
    const leaks = await json("leaks", "--json", path);
    assert.equal((await text(page, ".sentence a")).toLowerCase(), leaks.verdict.toLowerCase());
    assert.match(await text(page, ".head"), /20\.0 s/);
    assert.ok((await text(page, ".head")).includes(sized(report.totals.allocated)));
    assert.ok((await text(page, ".totals")).includes(sized(report.totals.peak)));
    assert.ok((await text(page, ".totals")).includes(sized(report.totals.live)));
    const rows = await page.locator(".legend li").allInnerTexts();
    assert.equal(rows.length, report.table.rows.length + (report.table.others.rows > 0 ? 1 : 0));
    for (const [at, row] of report.table.rows.entries()) {
      assert.ok(rows[at].includes(row.name) && rows[at].includes(sized(row)), `${rows[at]} is not ${row.name} ${sized(row)}`);
    }
    assert.ok((await treeItems(page)).some((item) => item.startsWith("all, ")));
    await picture(page, "overview");
    await page.locator("#metric").selectOption("allocated");
    await settled(page);
    assert.match(await text(page, ".legend li:last-child"), /^\d+ others/);
    assert.equal(await page.locator(".legend li").count(), 9, "eight modules and the rest");
  }));

test("every number has its error", () =>
  open("#table", async (page) => {
    for (const row of await page.locator("tbody tr, tfoot tr").allInnerTexts()) assert.match(row, /\d (bytes|[KMG]iB)\s+± [\d.]+ %/);
    await picture(page, "table");
  }));

test("hot fragments are those of the command line, and lead to their rows", () =>
  open("#table&metric=peak", async (page) => {
    await page.getByRole("button", { name: "hot fragments" }).click();
    await settled(page);
    assert.match(await fragment(page), /hot=1/);
    const { fragments } = await json("hot", "--json", "--metric", "peak", await trace("service.ctf"));
    const shown = await page.locator(".fragment").allInnerTexts();
    assert.equal(shown.length, fragments.length);
    for (const [at, expected] of fragments.entries()) {
      assert.ok(shown[at].includes(sized(expected)), `${shown[at]}: not ${sized(expected)}`);
      for (const { name } of expected.frames.slice(0, 8)) assert.ok(shown[at].includes(name), `${shown[at]}: no ${name}`);
    }
    await picture(page, "hot");
    await page.locator(".frames button").first().click();
    await settled(page);
    assert.match(await text(page, ".panel-name"), new RegExp(fragments[0].frames[0].name.replace(/\W/g, "\\$&")));
    await page.goBack();
    await settled(page);
    assert.equal(await page.locator(".fragment").count(), fragments.length);
  }));

test("the verdict leads to the leaks", () =>
  open("", async (page) => {
    await page.locator(".sentence a").click();
    await settled(page);
    assert.match(await fragment(page), /^#leaks/);
    assert.equal(await page.locator(".card").count(), 1);
    const card = await text(page, ".card");
    const [leak] = (await json("leaks", "--json", await trace("service.ctf"))).leaks;
    for (const part of ["Session.remember", "a minute", sized(leak.live), "Session.login", "by time of allocation", "95 % band"]) assert.ok(card.includes(part), `no “${part}” in ${card}`);
    await picture(page, "leaks");
    await page.getByRole("button", { name: "call paths" }).click();
    await settled(page);
    assert.match(await fragment(page), /^#flame&metric=live&function=/);
  }));

test("a brush selects a time, updates while it moves, and Back takes it away", () =>
  open("", async (page) => {
    const box = await page.locator(".brush").boundingBox();
    const before = await text(page, ".tools h2");
    await page.mouse.move(box.x + box.width * 0.25, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 5 });
    await page.locator(".chip").waitFor();
    await settled(page);
    const during = await text(page, ".tools h2");
    assert.notEqual(during, before, "the tree follows the brush before it is let go");
    await page.mouse.up();
    await settled(page);
    assert.match(await text(page, ".chip"), /allocated\s+5\.0 s – 10\.0 s/);
    await picture(page, "brush");
    const report = await json("report", "--json", "--metric", "peak", "--since", "5s", "--until", "10s", await trace("service.ctf"));
    const [from, to] = /time=(\d+)-(\d+)/.exec(await fragment(page)).slice(1).map(Number);
    assert.ok(Math.abs(from - 5e6) < 5e4 && Math.abs(to - 1e7) < 5e4);
    assert.ok(report.totals.samples > 0);
    await page.goBack();
    await settled(page);
    assert.equal(await page.locator(".chip").count(), 0);
    assert.equal(await text(page, ".tools h2"), before);
  }));

test("the ends of the brush are sliders", () =>
  open("#flame", async (page) => {
    await page.keyboard.press("[");
    for (let times = 0; times < 5; times++) await page.keyboard.press("ArrowRight");
    await page.keyboard.press("]");
    await page.keyboard.press("PageDown");
    await settled(page);
    const start = page.getByRole("slider", { name: "Allocated from" });
    const end = page.getByRole("slider", { name: "Allocated until" });
    assert.equal(await start.getAttribute("aria-valuetext"), "1000 ms");
    assert.equal(await end.getAttribute("aria-valuetext"), "18.0 s");
    await page.keyboard.press("Escape");
    await settled(page);
    assert.equal(await page.locator(".chip").count(), 0);
  }));

test("a click on the time line asks what was alive then", () =>
  open("#overview", async (page) => {
    const box = await page.locator(".brush").boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + 80);
    await settled(page);
    assert.match(await text(page, ".tools h2"), /^Live at 10\.0 s/);
    const [at] = /at=(\d+)$/.exec(await fragment(page)).slice(1);
    const report = await json("report", "--json", "--at", `${Number(at)}us`, await trace("service.ctf"));
    assert.ok((await text(page, ".tools h2")).includes(sized(report.table.total)));
  }));

test("module, function, line over time; Backspace returns", () =>
  open("#overview&metric=allocated", async (page) => {
    await page.locator(".legend").getByRole("button", { name: "Render" }).click();
    await settled(page);
    const functions = await page.locator(".legend li").allInnerTexts();
    assert.ok(functions.some((row) => row.includes("Render.cell")), functions.join());
    await page.locator(".legend").getByRole("button", { name: "Render.cell" }).click();
    await settled(page);
    assert.ok((await page.locator(".legend li").allInnerTexts()).some((row) => row.includes("src/render.ml:33")));
    await picture(page, "drill-down");
    await page.keyboard.press("Backspace");
    await settled(page);
    assert.deepEqual(await page.locator(".legend li").allInnerTexts(), functions);
    await page.keyboard.press("Backspace");
    await settled(page);
    assert.equal(await text(page, ".crumbs"), "All modules");
  }));

test("labels and domains over time, side by side", () =>
  open("#overview&over=label&multiples=1&metric=allocated", async (page) => {
    assert.deepEqual((await page.locator("figcaption").allInnerTexts()).map((name) => name.split(/\s/)[0]).sort(), ["login", "report", "search"]);
    await page.getByLabel("Group the time line by").selectOption("domain");
    await settled(page);
    assert.equal(await page.locator("figcaption").count(), 3);
    await picture(page, "multiples");
  }));

test("focus by double click and by key; Backspace steps out", () =>
  open("#flame&metric=allocated", async (page) => {
    for (const key of ["ArrowDown", "j", "ArrowDown"]) await page.keyboard.press(key);
    const selected = page.locator('[role="treeitem"][aria-selected="true"]');
    const name = (await selected.innerText()).split(",")[0];
    await settled(page);
    assert.ok((await text(page, ".panel")).includes("with what it calls"));
    await picture(page, "flame-selected");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await fragment(page), /focus=/);
    assert.ok((await treeItems(page)).some((item) => item.startsWith(name)));
    await picture(page, "flame-focus");
    await page.keyboard.press("Backspace");
    await settled(page);
    const steps = /focus=([^&]*)/.exec(await fragment(page))?.[1].split("/").length ?? 0;
    assert.equal(steps, 2);
    const box = await page.locator(".icicle-box").boundingBox();
    await page.mouse.click(box.x + 50, box.y + 10);
    await settled(page);
    assert.doesNotMatch(await fragment(page), /focus=/, "a click on the row of an ancestor goes back to it");
    await page.mouse.dblclick(box.x + 50, box.y + 50);
    await settled(page);
    assert.match(await fragment(page), /focus=/);
  }));

test("inverted, the allocation sites are at the top", () =>
  open("#flame&metric=allocated", async (page) => {
    await page.keyboard.press("i");
    await settled(page);
    await page.keyboard.press("ArrowDown");
    await settled(page);
    assert.match(await page.locator('[role="treeitem"][aria-selected="true"]').innerText(), /^Json\.token/);
    await picture(page, "flame-inverted");
  }));

test("search finds frames, n and N step through them", () =>
  open("#flame&metric=allocated", async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("json");
    await settled(page);
    assert.match(await text(page, ".found"), /^\d+ frames? with .* ± .* %/);
    await page.keyboard.press("Enter");
    const selected = () => page.locator('[role="treeitem"][aria-selected="true"]').innerText();
    assert.match(await selected(), /^Json\./);
    const was = await selected();
    await page.keyboard.press("n");
    assert.notEqual(await selected(), was);
    await page.keyboard.press("N");
    assert.equal(await selected(), was);
    await picture(page, "search");
    await page.keyboard.press("/");
    await page.keyboard.type("nothing like this");
    await settled(page);
    assert.match(await text(page, ".found"), /^No frame matches/);
  }));

test("chips of every kind, with completion, agree with the command line", () =>
  open("#table&metric=allocated", async (page) => {
    const path = await trace("service.ctf");
    const add = async (kind, value) => {
      await page.keyboard.press("f");
      await page.locator(".menu button").filter({ has: page.getByText(kind, { exact: true }) }).click();
      await page.keyboard.type(value);
      await page.keyboard.press("Enter");
      await settled(page);
    };
    const total = () => text(page, "tfoot tr:last-child");
    const agrees = async (...args) => {
      const report = await json("report", "--json", ...args, path);
      const shown = (await total()).replace(/\s+/g, " ");
      assert.ok(shown.startsWith(sized(report.table.total)), `${shown}: not ${sized(report.table.total)} of ${args.join(" ")}`);
      await page.getByRole("button", { name: /^Remove/ }).click();
      await settled(page);
    };
    await add("function", "Render");
    await agrees("--filter", "Render");
    await add("file", "json\\.ml");
    await agrees("--filter", "json\\.ml");
    await add("without", "Render");
    await agrees("--exclude", "Render");
    await add("size", "64-200");
    await agrees("--min-size", "64", "--max-size", "200");
    await add("lifetime", "1s");
    await agrees("--min-lifetime", "1s");
    await add("label", "login");
    await agrees("--label", "login");
    await add("domain", "2");
    await agrees("--domain", "2");
    await add("time", "2s-4s");
    await agrees("--since", "2s", "--until", "4s");
    await add("source", "external");
    assert.ok((await page.locator("tbody").innerText()).includes("Pool.buffer"));
    // The others only call it.
    assert.deepEqual((await page.locator("tbody tr").allInnerTexts()).filter((row) => !row.startsWith("<")).length, 1);
    await page.getByRole("button", { name: /^Remove/ }).click();
    // A name that is completed matches itself alone.
    await page.keyboard.press("f");
    await page.locator(".menu button", { hasText: "function" }).first().click();
    await page.keyboard.type("index");
    await settled(page);
    await page.locator(".offered button", { hasText: "Index.find" }).click();
    await settled(page);
    assert.match(await text(page, ".chip"), /\^Index\\\.find\$/);
    await picture(page, "chips");
  }));

test("a name that moves under the pointer is not taken for another", () =>
  open("#table", async (page) => {
    await page.keyboard.press("f");
    await page.locator(".menu button", { hasText: "function" }).first().click();
    await settled(page);
    const offered = page.locator(".offered button");
    const first = await offered.first().innerText();
    await offered.first().hover();
    await page.mouse.down();
    // What was typed before is answered only now.
    await page.locator(".form input").evaluate((field) => {
      field.value = "index";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await settled(page);
    assert.notEqual(await offered.first().innerText(), first);
    await page.mouse.up();
    await settled(page);
    assert.equal(await page.locator(".chip").count(), 0);
  }));

test("what is wrong with a filter is said where it is entered, and by the query", () =>
  open("#table", async (page) => {
    await page.keyboard.press("f");
    await page.locator(".menu button", { hasText: "size" }).first().click();
    await page.keyboard.type("large");
    await page.keyboard.press("Enter");
    assert.match(await text(page, ".form .problem"), /A size is like/);
    await page.keyboard.press("Escape");
    await page.keyboard.press("f");
    await page.locator(".menu button", { hasText: "function" }).first().click();
    await page.keyboard.type("(");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await text(page, ".problem"), /\(/);
    await picture(page, "wrong-filter");
  }));

test("filters that leave nothing say so", () =>
  open("#flame&function=no_such_function", async (page) => {
    assert.match(await text(page, ".message"), /No block passes the filters/);
    await page.keyboard.press("3");
    await settled(page);
    assert.match(await text(page, ".message"), /No block passes the filters/);
  }));

test("keys: tabs, metric, peak, theme, help", () =>
  open("", async (page) => {
    for (const [key, tab] of [["2", "flame"], ["3", "table"], ["4", "leaks"], ["5", "diff"], ["6", "source"], ["1", "overview"]]) {
      await page.keyboard.press(key);
      assert.match(await fragment(page), new RegExp(`^#${tab}`));
    }
    await page.keyboard.press("m");
    assert.match(await fragment(page), /metric=at&at=\d+/);
    await page.keyboard.press("m");
    assert.match(await fragment(page), /metric=live/);
    await page.keyboard.press("p");
    assert.doesNotMatch(await fragment(page), /metric=/);
    await page.keyboard.press("d");
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keys, marks and words" }).waitFor();
    await picture(page, "help");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("dialog[open]").count(), 0);
    await settled(page);
  }));

test("rows open by key and by click, with callers and callees", () =>
  open("#table&metric=allocated", async (page) => {
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await settled(page);
    const [, second] = (await json("report", "--json", await trace("service.ctf"))).table.rows;
    assert.equal(await text(page, ".panel-name"), second.name);
    assert.ok((await text(page, ".panel")).includes(`itself`));
    assert.ok((await text(page, ".panel")).includes(sized(second)));
    assert.match(await text(page, ".panel"), /Callers/);
    await picture(page, "table-row");
    await page.keyboard.press("Backspace");
    await settled(page);
    assert.equal(await page.locator(".panel").count(), 0);
  }));

test("rows, cards and the time line name own code, or what allocates", async () => {
  const name = "crates/trace/tests/data/made-maps.v2.ctf";
  const path = await trace(name);
  const rows = async (page) => {
    await settled(page);
    // Not those that only call others.
    return (await page.locator("tbody tr").allInnerTexts()).filter((row) => !row.startsWith("<"));
  };
  const agrees = (shown, { table }) => {
    assert.equal(shown.length, table.rows.length);
    for (const [at, row] of table.rows.entries()) assert.ok(shown[at].includes(row.name) && shown[at].replace(/\s+/g, " ").includes(sized(row)), `${shown[at]} is not ${row.name} ${sized(row)}`);
  };
  const expected = (sites) => json("report", "--json", "--top", "0", "--metric", "allocated", "--sites", sites, path);
  await withPage(await exported(name), { fragment: "#table&metric=allocated" }, async (page) => {
    const [own, innermost] = [await expected("own"), await expected("innermost")];
    assert.notEqual(own.table.rows[0].name, innermost.table.rows[0].name);
    agrees(await rows(page), own);
    assert.match(await text(page, ".rows h2"), /by function \(own code\)/);
    await page.keyboard.press("ArrowDown");
    await settled(page);
    assert.match(await text(page, ".panel"), /itself, with libraries/);
    assert.ok((await text(page, ".panel")).includes(sized(own.table.rows[0])));
    await picture(page, "own-code");
    await page.keyboard.press("o");
    agrees(await rows(page), innermost);
    assert.match(await fragment(page), /sites=innermost/);
    await page.getByRole("button", { name: "own code" }).click();
    agrees(await rows(page), own);
    assert.ok(!/sites=/.test(await fragment(page)));
  });
});

test("a copied link opens the same view", async () => {
  let link;
  await open("#flame&metric=allocated&label=login", async (page) => {
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await settled(page);
    await page.keyboard.press("c");
    await page.getByRole("button", { name: "copied" }).waitFor();
    link = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(link, page.url());
  }, { permissions: ["clipboard-read", "clipboard-write"] });
  await withPage(link, {}, async (page) => {
    assert.match(await fragment(page), /^#flame&metric=allocated&label=login&focus=/);
    assert.match(await text(page, ".chip"), /label\s+~ login/);
    assert.match(await text(page, ".panel"), /in focus/);
  });
});

test("a fragment that is cut or wrong opens what it can", () =>
  open("#nonsense&metric=no&at=x&focus=%E0%A4%A&size=9-1&=&&trace=99999", async (page) => {
    assert.equal(await page.locator(".tabs [aria-current]").innerText(), "Overview");
    assert.equal(await page.locator(".chip").count(), 0);
  }));

test("dark by preference and by hand", async () => {
  const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await open("", async (page) => {
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    const dark = await ground(page);
    await picture(page, "overview-dark");
    await page.getByRole("button", { name: "Light theme" }).click();
    assert.notEqual(await ground(page), dark);
    await page.keyboard.press("2");
    await settled(page);
  }, { theme: "dark" });
});

test("hovering shows a frame's size with its error", () =>
  open("#flame&metric=allocated", async (page) => {
    const box = await page.locator(".icicle-box").boundingBox();
    await page.mouse.move(box.x + 40, box.y + 30);
    assert.match(await text(page, ".tip"), /± [\d.]+ %.*of the total.*samples/s);
  }));
