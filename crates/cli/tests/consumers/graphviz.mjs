// Draws a file with Graphviz, compiled for WebAssembly, and prints what it has drawn:
//
//   node graphviz.mjs PACKAGE FILE

import { readFileSync } from "node:fs";
import { join } from "node:path";

const [directory, file] = process.argv.slice(2);
const { instance } = await import(join(directory, "lib", "viz-standalone.mjs"));
const viz = await instance();
const text = readFileSync(file, "utf8");
const { status, output, errors } = viz.render(text, { format: "json" });
// It has the widths of ASCII characters only, and says so.
const faults = errors.filter(({ message }) => !message.includes("width of non-ASCII character"));
if (status !== "success" || faults.length > 0) {
  throw new Error(JSON.stringify(faults));
}
const { objects, edges } = JSON.parse(output);
console.log(JSON.stringify({
  nodes: objects.map(({ name, label }) => ({ name, label })),
  edges: edges.map(({ tail, head, penwidth }) => ({ tail, head, width: Number(penwidth) })),
  svg: viz.render(text, { format: "svg" }).output,
}));
