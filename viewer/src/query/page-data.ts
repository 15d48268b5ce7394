// What the page was written with: its mode, the names of its traces, and, in a page that stands
// alone, the query and the traces themselves. A page that `heaptap serve` shows fetches the traces.

import type { PageDiagnosis } from "./figures";
import { unpacked } from "./packed";
import type { Packed } from "./protocol";

export interface Config {
  mode: "file" | "serve";
  traces: { name: string }[];
  /** Whether there is the text of source files, in the page or from the server. */
  source: boolean;
  /** Whether the server answers from a full reading of a trace. */
  exact: boolean;
  /** How many heap snapshots there are. */
  snapshots: number;
  version: string;
}

export interface TraceStatus {
  name: string;
  state: "reading" | "ready" | "failed";
  read: number;
  size: number;
  error?: string;
  /** The reading for exact figures, while there is one. */
  exact?: { read: number; size: number };
  /** If it is followed while it is written, or shown while it is read. */
  live?: LiveStatus;
}

export interface LiveStatus {
  /** Another text means that there is something new. */
  version: string;
  state: "reading" | "partial" | "live" | "ended" | "killed" | "cut" | "failed";
  /** Of a complete trace of which a part was read (`partial`): how much. */
  percent?: number;
}

function text(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

export function readConfig(): Config {
  const given = JSON.parse(text("heaptap-config") || "{}") as Partial<Config>;
  return { mode: "file", traces: [], source: false, exact: false, snapshots: 0, version: "", ...given };
}

export function embeddedQuery(): Packed {
  return text("heaptap-wasm");
}

export function embeddedTrace(trace: number): Packed {
  return text(`heaptap-trace-${trace}`);
}

const token = () => new URLSearchParams(location.search).get("token") ?? "";

/** An address of the server with the token of this page. */
function address(path: string, query: Record<string, string> = {}): string {
  return `${path}?${new URLSearchParams({ ...query, token: token() })}`;
}

async function answered(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw new Error(
    response.status === 403
      ? "the server refuses this page's token; open the address that `heaptap serve` printed"
      : `the server answered ${response.status}: ${(await response.text()).slice(0, 200)}`,
  );
}

/** A request that did not reach the server says so in the page's words. */
async function asked(path: string, init?: RequestInit): Promise<Response> {
  try {
    return await answered(await fetch(path, init));
  } catch (reason) {
    if (reason instanceof TypeError) {
      throw new Error("the server does not answer: `heaptap serve` has stopped; start it again and reload");
    }
    throw reason;
  }
}

export async function fetchStatus(): Promise<TraceStatus[]> {
  return (await asked(address("status"))).json() as Promise<TraceStatus[]>;
}

export async function fetchTrace(trace: number): Promise<Packed> {
  return (await asked(address(`trace/${trace}`))).arrayBuffer();
}

export function embeddedSnapshots(): Packed {
  return text("heaptap-snapshots");
}

/** The document about the snapshots; null while the server still reads them. */
export async function fetchSnapshots(): Promise<Packed | null> {
  const response = await asked(address("snapshots"));
  return response.status === 202 ? null : response.arrayBuffer();
}

/** What the programs say of themselves, of all traces; empty if there is nothing. */
export function embeddedSidecars(): string {
  return text("heaptap-probes");
}

export async function fetchSidecar(trace: number): Promise<ArrayBuffer> {
  return (await asked(address(`probes/${trace}`))).arrayBuffer();
}

/** What is wrong with the programs, of all traces; empty if the page was written without. */
export function embeddedDiagnoses(): string {
  return text("heaptap-diagnoses");
}

export async function fetchDiagnosis(trace: number): Promise<PageDiagnosis> {
  return (await asked(address(`diagnosis/${trace}`))).json() as Promise<PageDiagnosis>;
}

let embeddedSources: Promise<Record<string, string[]>> | undefined;

/** The lines of a source file: those in the page, or those that the server reads. */
export async function sourceLines(mode: Config["mode"], trace: number, file: string): Promise<string[]> {
  if (mode === "serve") return fetchSource(trace, file);
  embeddedSources ??= unpacked(text("heaptap-sources")).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as Record<string, string[]>);
  const sources = await embeddedSources;
  if (!Object.hasOwn(sources, file)) throw new Error(`${file} was not found under --source-root when the page was written`);
  return sources[file]!;
}

async function fetchSource(trace: number, file: string): Promise<string[]> {
  const response = await asked(address("source", { trace: String(trace), file }));
  const source = (await response.json()) as { lines?: string[]; error?: string };
  if (source.error !== undefined) throw new Error(source.error);
  return source.lines ?? [];
}

/** The answer of the full reading, as JSON. */
export async function fetchExact(request: string, signal: AbortSignal): Promise<string> {
  return (await asked(address("exact"), { method: "POST", body: request, signal })).text();
}
