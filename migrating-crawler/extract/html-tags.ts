/**
 * Describes HTML elements (WHATWG HTML, sections 13.1.2 and 13.2.6): how their content is read, whether they break the
 * text, and which end tags are optional.
 */

/**
 * How an element's content is parsed: markup, text with or without character references, a script, or plain text to the
 * end.
 */
type ContentModel = "markup" | "rcdata" | "rawtext" | "script" | "plaintext";

export interface HtmlTag {
  readonly name: string;
  readonly content: ContentModel;
  /** A void element has no content and no end tag. */
  readonly isVoid: boolean;
  /** Starts and ends a block of text, and ends an open paragraph. */
  readonly isBlock: boolean;
  /** The levels 1 to 6 of h1 to h6, or 0. */
  readonly headingLevel: number;
  /** The element's text is invisible or no prose. */
  readonly isUnseen: boolean;
  /** Whether it stays on the stack of open elements; phrasing elements do only when they are marked. */
  readonly isKept: boolean;
  /** A unique number below `tagCount`, or -1 for a name outside the table. */
  readonly index: number;
  /** Its start ends an open element of these (by index) unless one of `startBarriers` lies between. */
  readonly ends: readonly number[];
  readonly startBarriers: Uint8Array;
  /** Its end tag is ignored when one of these lies between it and its element. */
  readonly endBarriers: Uint8Array;
}

/** Looks up the tag name `html.slice(from, to)` by the `nameHash` that the scanner computed. */
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

/** Adds one character code to the hash of a tag name, ignoring case. */
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
/** These blocks do not end an open paragraph. */
const withinParagraph = set("br caption legend option optgroup tbody td tfoot th thead title tr");
const unseen = set(
  "script style noscript template svg math title select datalist textarea iframe object canvas audio video noembed " +
    "noframes applet",
);
/** These are no blocks but stay on the stack. */
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
/** What a start tag ends, and the barriers that prevent it. */
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

export function flagsOf(some: ReadonlySet<string>): Uint8Array {
  return Uint8Array.from(names, (name) => (some.has(name) ? 1 : 0));
}

export function numbersOf(some: ReadonlyMap<string, number>): Int32Array {
  return Int32Array.from(names, (name) => some.get(name) ?? 0);
}

function hashOf(name: string): number {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = nameHash(hash, name.charCodeAt(at));
  return hash;
}
