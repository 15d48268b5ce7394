// Takes the picture of the page at the top of README: `make picture`, from `make demo`'s page.
//
//   node viewer/picture.mjs target/demo.html docs/viewer.png
//   node viewer/picture.mjs words.html docs/viewer-leaks.png leaks          another view
//   node viewer/picture.mjs words.html docs/viewer-overview.png overview 960   as high as that

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [page, picture, view = "", height = "660"] = process.argv.slice(2);
if (!picture) {
  console.error("usage: node viewer/picture.mjs PAGE.html PICTURE.png [VIEW [HEIGHT]]");
  process.exit(2);
}
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"],
});
try {
  const tab = await browser.newPage({ viewport: { width: 1120, height: Number(height) }, colorScheme: "light" });
  await tab.goto(`${pathToFileURL(resolve(page)).href}#${view}`);
  await tab.locator("canvas").first().waitFor();
  await tab.waitForTimeout(1000);
  await tab.screenshot({ path: picture });
} finally {
  await browser.close();
}
