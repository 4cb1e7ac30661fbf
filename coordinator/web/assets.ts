/**
 * Scripts, the logo and one stylesheet concatenated from the parts in `assets/`. Everything is read once and cached
 * (60 KB). Pages refer to assets by content (`?v=`), so that browsers never use another release's.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Html, html } from "./html.ts";

/** The folder is beside this file, in the sources and in dist. */
const folder = new URL("./assets/", import.meta.url);

/** Loaded first, so that later styles can override them. */
const firstStyles = ["base", "frame", "controls", "figures", "charts", "overview"];

/** Loaded last, because tables on narrow screens override their page's styles. */
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
  readonly digest: string;
}

let known: ReadonlyMap<string, Asset> | null = null;

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

/** Removes comments and indentation. No string in our styles may look like a comment. */
function withoutComments(style: string): string {
  return style
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s*\n\s*/g, "\n")
    .trimStart();
}

export function assetAddress(name: string): string {
  const asset = assets().get(name);
  if (asset === undefined) throw new TypeError(`${name}: no such asset`);
  return `/assets/${name}?v=${asset.digest}`;
}

/** The script is a module, so it runs after the page is parsed and its names stay private. */
export function pageScript(name: string): Html {
  return html`<script src="${assetAddress(name)}" type="module"></script>`;
}
