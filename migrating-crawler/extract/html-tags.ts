/**
 * What a reader of pages must know of HTML's elements (WHATWG HTML, sections 13.1.2 and 13.2.6): how their
 * content is read, whether they break the text, and which end tags may be left out.
 */

/** How an element's content is read: as markup, as text with or without character references, as a script, to the end. */
type ContentModel = "markup" | "rcdata" | "rawtext" | "script" | "plaintext";

export interface HtmlTag {
  /** In lower case. */
  readonly name: string;
  readonly content: ContentModel;
  /** Has no content and no end tag. */
  readonly isVoid: boolean;
  /** Begins and ends a block of text, and ends an open paragraph. */
  readonly isBlock: boolean;
  /** 1 to 6 for h1 to h6; else 0. */
  readonly headingLevel: number;
  /** Nobody sees its text, or it is no prose. */
  readonly isUnseen: boolean;
  /** Kept on the stack of open elements; phrasing elements are only when something is noted of them. */
  readonly isKept: boolean;
  /** A number of its own, below `tagCount`; -1 for a name that is not in the table. */
  readonly index: number;
  /** Its start ends an open element of these (by index), unless one of `startBarriers` (1 at its index) lies between. */
  readonly ends: readonly number[];
  readonly startBarriers: Uint8Array;
  /** Its end tag is passed over when one of these lies between it and its element. */
  readonly endBarriers: Uint8Array;
}

/** The tag of `html.slice(from, to)`, whose `nameHash` the scanner has made on its way. */
export function tagOf(html: string, name: { from: number; to: number; hash: number }): HtmlTag {
  const known = byHash.get(name.hash);
  if (
    known !== undefined &&
    known.name.length === name.to - name.from &&
    html.startsWith(known.name, name.from)
  )
    return known;
  const lower = html.slice(name.from, Math.min(name.to, name.from + maxNameCharacters)).toLowerCase();
  return byName.get(lower) ?? { ...unknown, name: lower };
}

/** One step of the hash of a tag's name, over the codes of its characters; the case of letters is ignored. */
export function nameHash(hash: number, code: number): number {
  return (Math.imul(hash, 31) + (code | 0x20)) | 0;
}

const maxNameCharacters = 100;
const list = (names: string): readonly string[] => names.split(" ");
const set = (names: string): ReadonlySet<string> => new Set(list(names));

const contents: Readonly<Record<string, ContentModel>> = {
  title: "rcdata",
  textarea: "rcdata",
  style: "rawtext",
  xmp: "rawtext",
  iframe: "rawtext",
  noembed: "rawtext",
  noframes: "rawtext",
  script: "script",
  plaintext: "plaintext",
};
const voids = set(
  "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
);
const blocks = set(
  "address article aside blockquote br caption center dd details dialog dir div dl dt fieldset figcaption figure " +
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu nav ol optgroup option p " +
    "plaintext pre search section summary table tbody td tfoot th thead title tr ul xmp",
);
/** Blocks that do not end an open paragraph. */
const withinParagraph = set("br caption legend option optgroup tbody td tfoot th thead title tr");
const unseen = set(
  "script style noscript template svg math title select datalist textarea iframe object canvas audio video noembed " +
    "noframes applet",
);
/** No blocks, and kept on the stack all the same. */
const alsoKept = list(
  "noscript template svg math select datalist object canvas audio video applet button " +
    "foreignobject desc mi mo mn ms mtext annotation-xml",
);
const phrasing = list(
  "a abbr acronym b big cite code data del dfn em font i ins kbd label mark q s samp small span strong sub sup " +
    "time tt u var html head body frameset",
);

const scopes = "table td th caption template object applet marquee svg math foreignobject";
const tables = set("table template");
const paragraphScope = set(`${scopes} button`);
const defaultScope = set(scopes);
const listScope = set(`${scopes} ul ol menu dir`);
const tableParts = set("table caption tbody thead tfoot tr td th");
/** What a start tag ends, and what must not lie between. */
const implied: Readonly<Record<string, readonly [ends: string, barriers: ReadonlySet<string>]>> = {
  li: ["li", listScope],
  dd: ["dd dt", set(`${scopes} dl`)],
  dt: ["dd dt", set(`${scopes} dl`)],
  option: ["option", set("select datalist optgroup")],
  optgroup: ["option optgroup", set("select datalist")],
  td: ["td th", set("table template tr")],
  th: ["td th", set("table template tr")],
  tr: ["tr", tables],
  tbody: ["tbody thead tfoot caption", tables],
  thead: ["tbody thead tfoot caption", tables],
  tfoot: ["tbody thead tfoot caption", tables],
};

const names = [
  ...new Set([...phrasing, ...voids, ...blocks, ...unseen, ...alsoKept, ...Object.keys(contents)]),
];
/** How many names the table has. */
export const tagCount = names.length;
const unknown = tagNamed("", -1);
const byName = new Map(names.map((name, index) => [name, tagNamed(name, index)]));
const byHash = new Map([...byName.values()].map((tag) => [hashOf(tag.name), tag]));

function tagNamed(name: string, index: number): HtmlTag {
  const endsParagraph = blocks.has(name) && !withinParagraph.has(name) && implied[name] === undefined;
  const [ends, startBarriers] = implied[name] ?? [endsParagraph ? "p" : "", paragraphScope];
  return {
    name,
    index,
    content: contents[name] ?? "markup",
    isVoid: voids.has(name),
    isBlock: blocks.has(name),
    headingLevel: /^h[1-6]$/.test(name) ? Number(name[1]) : 0,
    isUnseen: unseen.has(name),
    isKept: (blocks.has(name) || alsoKept.includes(name)) && !voids.has(name),
    ends: ends === "" ? [] : list(ends).map((ended) => names.indexOf(ended)),
    startBarriers: flagsOf(startBarriers),
    endBarriers: flagsOf(tableParts.has(name) ? tables : name === "li" ? listScope : defaultScope),
  };
}

/** By index, 1 for the names of the set. */
export function flagsOf(some: ReadonlySet<string>): Uint8Array {
  return Uint8Array.from(names, (name) => (some.has(name) ? 1 : 0));
}

/** By index, what the map has for the name, else 0. */
export function numbersOf(some: ReadonlyMap<string, number>): Int32Array {
  return Int32Array.from(names, (name) => some.get(name) ?? 0);
}

function hashOf(name: string): number {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = nameHash(hash, name.charCodeAt(at));
  return hash;
}
