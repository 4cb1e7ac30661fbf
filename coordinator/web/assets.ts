/**
 * What pages load: scripts, the mark, and one stylesheet that is put together of the files for each part of the pages. All of it is
 * read once and kept, 60 KB. Pages name it by its content (`?v=`), so that nobody keeps what another release had.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Html, html } from "./html.ts";

/** In the source folder and in dist alike: beside this file. */
const folder = new URL("./assets/", import.meta.url);

/** For every page first: what comes later may change what these say. */
const firstStyles = ["base", "frame", "controls", "figures", "charts", "overview"];

/** And last, for every table on a narrow screen, whatever its page says of it. */
const lastStyles = ["tables"];

const styleSheet = "nearcrawl.css";

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

interface Asset {
  readonly body: Buffer;
  readonly type: string;
  /** Of its content. */
  readonly digest: string;
}

let known: ReadonlyMap<string, Asset> | null = null;

/** By name. */
export function assets(): ReadonlyMap<string, Asset> {
  known ??= readAssets();
  return known;
}

function readAssets(): ReadonlyMap<string, Asset> {
  const names = readdirSync(fileURLToPath(folder)).sort();
  const read = (name: string) => readFileSync(new URL(name, folder));
  const styles = names.filter((name) => name.endsWith(".css")).map((name) => name.slice(0, -4));
  const others = styles.filter((name) => !firstStyles.includes(name) && !lastStyles.includes(name));
  const ordered = [...firstStyles, ...others, ...lastStyles];
  const sheet = ordered.map((name) => withoutComments(read(`${name}.css`).toString())).join("");
  const bodies = names.filter((name) => !name.endsWith(".css")).map((name) => [name, read(name)] as const);
  return new Map([...bodies, [styleSheet, Buffer.from(sheet)] as const].map(toAsset));
}

function toAsset([name, body]: readonly [string, Buffer]): [string, Asset] {
  const type = types[extname(name)];
  if (type === undefined) throw new TypeError(`${name}: of no kind that pages load`);
  return [name, { body, type, digest: createHash("sha256").update(body).digest("base64url").slice(0, 16) }];
}

/** Nor are indents sent. No text in our styles holds what looks like a comment. */
function withoutComments(style: string): string {
  return style
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s*\n\s*/g, "\n")
    .trimStart();
}

/** The address of one of them in a page. */
export function assetAddress(name: string): string {
  const asset = assets().get(name);
  if (asset === undefined) throw new TypeError(`${name}: no such asset`);
  return `/assets/${name}?v=${asset.digest}`;
}

/** A module: runs once the page is read, and what it names is nobody else's. */
export function pageScript(name: string): Html {
  return html`<script src="${assetAddress(name)}" type="module"></script>`;
}
