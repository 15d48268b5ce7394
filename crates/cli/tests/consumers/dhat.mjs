// Opens a file with valgrind's dh_view.js and says what it shows:
//
//   node dhat.mjs DIRECTORY FILE
//
// The viewer runs as it is, on elements that have what it uses of a browser's.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [directory, file] = process.argv.slice(2);

class Element {
  constructor(tag, text = "") {
    Object.assign(this, { tag, own: text, childNodes: [], className: "" });
    const classes = new Set();
    this.classList = {
      add: (...names) => names.forEach((name) => classes.add(name)),
      remove: (name) => classes.delete(name),
      contains: (name) => classes.has(name),
    };
  }
  get firstChild() { return this.childNodes[0] ?? null; }
  get lastChild() { return this.childNodes.at(-1) ?? null; }
  get selectedIndex() {
    return Math.max(0, this.childNodes.findIndex((option) => option.selected));
  }
  appendChild(child) {
    this.childNodes.push(child);
    child.parent = this;
    return child;
  }
  removeChild(child) { this.childNodes.splice(this.childNodes.indexOf(child), 1); }
  cloneNode() { return Object.assign(new Element(this.tag), { className: this.className }); }
  get parentNode() { return this.parent; }
  replaceChild(child, old) {
    this.childNodes[this.childNodes.indexOf(old)] = child;
    child.parent = this;
  }
  setAttribute() {}
  get textContent() { return this.own + this.childNodes.map((node) => node.textContent).join(""); }
  set textContent(text) { this.own = text; this.childNodes = []; }
}

const document = {
  body: new Element("body"),
  location: { search: "" },
  createElement: (tag) => new Element(tag),
  createTextNode: (text) => new Element("text", text),
};
class FileReader {
  readAsText(name) { this.onload({ target: { result: readFileSync(name.name, "utf8") } }); }
}
const context = vm.createContext({ document, FileReader, URLSearchParams, performance, console });
vm.runInContext(readFileSync(join(directory, "dh_view.js"), "utf8"), context);
vm.runInContext("onLoad()", context);
context.file = { name: file };
vm.runInContext("gInput.files = [file]; gInput.onchange()", context);

const shown = vm.runInContext("gMainDiv", context).textContent;
const root = vm.runInContext(
  `({ total: gRoot._totalBytes, blocks: gRoot._totalBlocks, peak: gRoot._atTGmaxBytes,
      end: gRoot._atTEndBytes, lifetimes: gRoot._totalLifetimes,
      points: gData.pps.length,
      top: gRoot._kids
        .map((kid) => ({ name: gData.ftbl[kid._frames[0]], bytes: kid._totalBytes }))
        .reduce((most, one) => (one.bytes > most.bytes ? one : most)) })`,
  context,
);
console.log(JSON.stringify({ ...root, shown: shown.slice(0, 20000) }));
