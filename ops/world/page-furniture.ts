/**
 * What surrounds the text of a real page: inline styles, a script's data, menus with their classes, icons.
 * On the web's pages it is most of the bytes (the median page has about ten times as much markup as visible
 * text), and it is what a crawler reads and does not ship. The same for all pages of a site, as on real ones.
 */
import { SeededRandom } from "./seeded-random.ts";

export interface Furniture {
  /** Inside `<head>`. */
  readonly head: string;
  /** Between the header and the text. */
  readonly menu: string;
  /** Before `</body>`. */
  readonly foot: string;
}

const medianBytes = 34_000;
const leastBytes = 6_000;
const mostBytes = 160_000;

/** Log-normal in size; deterministic by seed. */
export function siteFurniture(seed: number): Furniture {
  const random = new SeededRandom(seed);
  const size = Math.min(mostBytes, Math.max(leastBytes, medianBytes * Math.exp(0.6 * random.normal())));
  const classes = Array.from({ length: 60 }, () => className(random));
  return {
    head: `<style>${repeated(size * 0.4, () => cssRule(random, classes))}</style>`,
    menu: `<div class="${random.pick(classes)}" role="navigation">${repeated(size * 0.35, () => menuEntry(random, classes))}</div>`,
    foot: `<script>window.__state={"build":"${hex(random, 16)}","items":[${repeated(size * 0.25, () => stateItem(random, classes)).slice(0, -1)}]}</script>`,
  };
}

function repeated(bytes: number, make: () => string): string {
  const parts: string[] = [];
  for (let length = 0; length < bytes; ) {
    const part = make();
    parts.push(part);
    length += part.length;
  }
  return parts.join("");
}

const properties = ["margin", "padding", "gap", "top", "width", "border-radius", "line-height", "flex-basis"];

function cssRule(random: SeededRandom, classes: readonly string[]): string {
  const declarations = Array.from(
    { length: random.integer(2, 6) },
    () => `${random.pick(properties)}:${random.integer(0, 64)}px`,
  );
  return `.${random.pick(classes)} .${random.pick(classes)}:hover{${declarations.join(";")};color:#${hex(random, 6)}}`;
}

/** An icon and a box, without a word: menus must not add to the text. */
function menuEntry(random: SeededRandom, classes: readonly string[]): string {
  const path = Array.from({ length: 8 }, () => `${random.integer(0, 24)}.${random.integer(0, 9)}`).join(" ");
  return `<div class="${random.pick(classes)} ${random.pick(classes)}" data-id="${hex(random, 8)}"><span class="${random.pick(classes)}" aria-hidden="true"><svg viewBox="0 0 24 24"><path d="M${path}z"/></svg></span></div>`;
}

function stateItem(random: SeededRandom, classes: readonly string[]): string {
  return `{"id":"${hex(random, 12)}","type":"${random.pick(classes)}","rank":${random.integer(1, 999)},"visible":${random.chance(0.5)}},`;
}

function className(random: SeededRandom): string {
  const parts = ["nav", "card", "grid", "item", "row", "col", "hero", "list", "btn", "wrap", "inner", "tile"];
  return `${random.pick(parts)}-${random.pick(parts)}__${hex(random, 4)}`;
}

function hex(random: SeededRandom, digits: number): string {
  return Array.from({ length: digits }, () => random.integer(0, 15).toString(16)).join("");
}
