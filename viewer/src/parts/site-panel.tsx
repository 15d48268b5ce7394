// The panel about one call site: how much, who calls it, what it calls, how long its blocks live.

import { useState } from "preact/hooks";
import type { By, Site, SiteDetails, SiteFrame, SiteNode, Source } from "../query/types";
import { literally, parts, siteKey } from "../text/sites";
import { meaning } from "../text/glossary";
import { bytes, percent, shortDuration } from "../text/units";
import { useQuery } from "../view/ask";
import { SOURCES } from "../view/chips";
import { siteColour } from "../view/colour";
import { common } from "../view/request";
import { addChip, change, view } from "../view/store";
import { Problem } from "./messages";
import { Sized } from "./numbers";
import { Bars } from "./spark";

/** `sites`: what counts as the site's own. In a call tree, each frame has what it allocates itself. */
export function SitePanel({ site, by, sites, onOpen, children }: { site: Site; by: By; sites: SiteFrame; onOpen(site: Site): void; children?: preact.ComponentChildren }) {
  // Labels, domains and sources are no frames: nothing calls them.
  const hasFrames = by !== "label" && by !== "domain" && by !== "source";
  const { answer, error, stale } = useQuery("site", "site", hasFrames ? { ...common(view.value), sites, by, site, levels: 3 } : null);
  const [name, more] = parts(site);
  const isFrame = by === "function" || by === "location";
  return (
    <aside class={`panel${stale ? " stale" : ""}`} aria-label={`About ${name}`}>
      <h2 class="panel-name"><i class="swatch" style={{ background: siteColour(site) }} />{name}</h2>
      {more && <p class="faint break">{more}</p>}
      {children}
      {hasFrames && error && <Problem text={error} />}
      {answer && <Details details={answer} sites={sites} onOpen={onOpen} />}
      <div class="panel-tools">
        {isFrame && site.name !== "" && <button type="button" onClick={() => addChip({ kind: "function", text: literally(site.name) })}>only this</button>}
        {isFrame && site.name !== "" && <button type="button" onClick={() => addChip({ kind: "without", text: literally(site.name) })}>without this</button>}
        {by === "file" && site.file && <button type="button" onClick={() => addChip({ kind: "file", text: literally(site.file!) })}>only this</button>}
        {by === "source" && SOURCES.includes(site.name as Source) && <button type="button" onClick={() => addChip({ kind: "source", source: site.name as Source })}>only this</button>}
        {by === "label" && <button type="button" onClick={() => addChip({ kind: "label", text: literally(site.name) })}>only this</button>}
        {by === "domain" && /\d+$/.test(site.name) && <button type="button" onClick={() => addChip({ kind: "domain", number: Number(/\d+$/.exec(site.name)![0]) })}>only this</button>}
        {site.file && <button type="button" onClick={() => change({ tab: "source", file: site.file!, line: site.line ?? 0 })}>source</button>}
      </div>
    </aside>
  );
}

function Details({ details, sites, onOpen }: { details: SiteDetails; sites: SiteFrame; onOpen(site: Site): void }) {
  const { lifetimes, sizes } = details;
  const lived = (at: number) => {
    const { from_us: from, to_us: to, bytes: size } = lifetimes.classes[at]!;
    return `${shortDuration(from)} – ${shortDuration(to)}: ${bytes(size)}`;
  };
  const sizedAs = (at: number) => {
    const { from, to, bytes: size } = sizes[at]!;
    return `${bytes(from)}${to === null ? " and more" : ` – ${bytes(to)}`}: ${bytes(size)}`;
  };
  return (
    <>
      <dl class="panel-facts">
        <div><dt title={meaning("self")}>{sites === "own" ? "itself, with libraries" : "itself"}</dt><dd><Sized size={details.sum} /></dd></div>
        <div><dt title={meaning("total")}>with what it calls</dt><dd><Sized size={details.total} /></dd></div>
        <div><dt>of the total</dt><dd>{percent(details.share)}</dd></div>
      </dl>
      <NodeList title="Callers" nodes={details.callers} onOpen={onOpen} />
      <NodeList title="Callees" nodes={details.callees} onOpen={onOpen} />
      {details.own_bytes > 0 && <p class="faint own-blocks">Of all {bytes(details.own_bytes)} that it allocates itself, without what it calls:</p>}
      {details.own_bytes > 0 && (
        <section>
          <h3>Lifetimes{lifetimes.median_us !== null && <span class="faint"> half within {shortDuration(lifetimes.median_us)}</span>}</h3>
          {lifetimes.classes.length > 0 && (
            <>
              <Bars values={lifetimes.classes.map((each) => each.bytes)} titles={lifetimes.classes.map((_, at) => lived(at))} label="Bytes by lifetime, of what was collected" />
              <p class="scale"><span>{shortDuration(lifetimes.classes[0]!.from_us)}</span><span>{shortDuration(lifetimes.classes.at(-1)!.to_us)}</span></p>
            </>
          )}
          {lifetimes.never_freed_bytes > 0 && <p class="faint never-freed">{lifetimes.classes.length > 0 ? "and " : ""}{bytes(lifetimes.never_freed_bytes)} not collected before the end</p>}
        </section>
      )}
      {sizes.length > 0 && (
        <section>
          <h3>Sizes of blocks</h3>
          <Bars values={sizes.map((each) => each.bytes)} titles={sizes.map((_, at) => sizedAs(at))} label="Bytes by size of block" />
          <p class="scale"><span>{bytes(sizes[0]!.from)}</span><span>{sizes.at(-1)!.to === null ? `≥ ${bytes(sizes.at(-1)!.from)}` : bytes(sizes.at(-1)!.to!)}</span></p>
        </section>
      )}
      {details.lines.length > 0 && (
        <section>
          <h3>Lines that allocate</h3>
          <ul class="nodes">
            {details.lines.slice(0, 8).map(({ line, sum }) => (
              <li><span class="node"><span class="node-name">line {line}</span><Sized size={sum} /></span></li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function NodeList({ title, nodes, onOpen }: { title: string; nodes: readonly SiteNode[]; onOpen(site: Site): void }) {
  if (nodes.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul class="nodes">{nodes.slice(0, 12).map((node) => <NodeItem key={siteKey(node.site)} node={node} onOpen={onOpen} open={nodes.length === 1} />)}</ul>
      {nodes.length > 12 && <p class="faint">and {nodes.length - 12} more</p>}
    </section>
  );
}

function NodeItem({ node, onOpen, open: first }: { node: SiteNode; onOpen(site: Site): void; open: boolean }) {
  const [open, setOpen] = useState(first);
  const [name] = parts(node.site);
  return (
    <li>
      <span class="node">
        {node.children.length > 0
          ? <button type="button" class="plain fold" aria-expanded={open} aria-label={`${open ? "Close" : "Open"} ${name}`} onClick={() => setOpen(!open)}>{open ? "▾" : "▸"}</button>
          : <span class="fold" />}
        <button type="button" class="plain node-name" title={name} onClick={() => onOpen(node.site)}>{name}</button>
        <Sized size={node.sum} />
      </span>
      {open && node.children.length > 0 && <ul class="nodes">{node.children.slice(0, 8).map((child) => <NodeItem key={siteKey(child.site)} node={child} onOpen={onOpen} open={false} />)}</ul>}
    </li>
  );
}
