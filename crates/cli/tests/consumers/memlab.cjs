// Opens a .heapsnapshot with memlab, and prints what it finds:
//
//   node memlab.cjs PACKAGE FILE
//
// Its parser and its dominators need nothing of the packages that its other parts need for
// terminals and browsers; those get objects that answer to everything.

const Module = require("node:module");
const { join } = require("node:path");

const [directory, file] = process.argv.slice(2);

const anything = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === "then" ? undefined : anything),
  apply: () => anything,
  construct: () => anything,
  has: () => true,
});
const load = Module._load;
Module._load = function (request, ...rest) {
  try {
    return load.call(this, request, ...rest);
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND" && !/^[./]/.test(request)) return anything;
    throw error;
  }
};

// The whole package first: its files import each other in circles.
require(join(directory, "dist/index.js"));
const memlab = (name) => require(join(directory, "dist", name)).default;
const console_ = memlab("lib/Console.js");
for (const name of ["overwrite", "lowLevel", "midLevel", "topLevel", "error", "warning"]) {
  console_[name] = (text) => process.stderr.write(`${text}\n`);
}
const HeapParser = memlab("lib/HeapParser.js");
const TraceFinder = memlab("paths/TraceFinder.js");

(async () => {
  const heap = await HeapParser.parse(file);
  const finder = new TraceFinder();
  finder.calculateAllNodesRetainedSizes(heap);
  const nodes = [];
  heap.nodes.forEach((node) => {
    nodes.push({
      id: node.id,
      name: node.name,
      type: node.type,
      self: node.self_size,
      retained: Number(node.retainedSize),
      edges: node.references.map((edge) => [edge.type, edge.name_or_index, edge.toNode.id]),
    });
  });
  process.stdout.write(JSON.stringify({ nodes, edges: heap.edges.length }) + "\n");
})();
