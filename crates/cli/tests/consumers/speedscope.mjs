// Opens a file with the importer of speedscope and says what speedscope would show:
//
//   node speedscope.mjs PACKAGE FILE
//
// The npm package has the web application alone, bundled. Its importer needs nothing of a
// browser; the rest gets objects that answer to everything.

import { readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import vm from "node:vm";

const [directory, file] = process.argv.slice(2);
const release = join(directory, "dist", "release");
const bundle = readdirSync(release).find((name) => /^speedscope-\w+\.js$/.test(name));
const source = readFileSync(join(release, bundle), "utf8");

// The list of what the module of importers exports, and the object it is put into.
const exported = /var ([\w$]+)=\{\};([\w$]+)\(\1,\{importFromFileSystemDirectoryEntry:/;
if (!exported.test(source)) {
  throw new Error(`${bundle} has no importers where they are looked for`);
}
const patched = source.replace(exported, "var $1=globalThis.importers={};$2($1,{importFromFileSystemDirectoryEntry:");

const anything = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === "then" ? undefined : anything),
  apply: () => anything,
  construct: () => anything,
  has: () => true,
});
const browser = ["window", "self", "document", "navigator", "location", "requestAnimationFrame"];
const context = vm.createContext({
  ...Object.fromEntries(browser.map((name) => [name, anything])),
  console: { ...console, log: console.error },
  performance, TextDecoder, TextEncoder, setTimeout, atob,
});
try {
  vm.runInContext(patched, context, { filename: bundle });
} catch (error) {
  console.error(`(the application itself does not start without a browser: ${error.message})`);
}
// The importers' module is loaded by a promise.
await new Promise(setImmediate);

const group = await context.importers.importProfileGroupFromText(
  basename(file),
  readFileSync(file, "utf8"),
);
const profiles = group.profiles.map((profile) => {
  const functions = new Map();
  profile.forEachFrame((frame) => {
    functions.set(frame.name, (functions.get(frame.name) ?? 0) + frame.getSelfWeight());
  });
  const [name, bytes] = [...functions].reduce((most, one) => (one[1] > most[1] ? one : most), ["", 0]);
  return {
    name: profile.getName(),
    unit: profile.getWeightUnit(),
    total: profile.getTotalWeight(),
    top: { name, bytes },
  };
});
console.log(JSON.stringify(profiles));
