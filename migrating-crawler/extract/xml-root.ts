/**
 * The root element of an XML document (XML 1.0 section 2.8): what says what the document is. The prolog is
 * passed over, document type and internal subset included, so that nothing declared there is ever read as
 * an element. Linear in the prolog's length.
 */

export interface XmlRoot {
  /** Without its prefix, in lower case. */
  readonly name: string;
  /** The namespace prefix with its colon, or nothing. */
  readonly prefix: string;
  /** The start tag's beginning: namespaces are declared there. */
  readonly tag: string;
  /** Where the start tag begins. */
  readonly at: number;
}

/** More of a start tag is not looked at. */
const maxTagCharacters = 4096;
const startTag = /<([\p{L}_][\p{L}\p{N}_.-]{0,60}:)?([\p{L}_][\p{L}\p{N}_.-]{0,60})(?=[\s/>])/uy;

/** Null: no element before anything else, so no XML. */
export function xmlRoot(text: string): XmlRoot | null {
  for (let at = pastBlanks(text, 0); text[at] === "<"; at = pastBlanks(text, at)) {
    const next = pastMarkup(text, at);
    if (next === null) return rootAt(text, at);
    if (next < 0) return null;
    at = next;
  }
  return null;
}

function rootAt(text: string, at: number): XmlRoot | null {
  startTag.lastIndex = at;
  const found = startTag.exec(text);
  if (found === null) return null;
  const tag = text.slice(at, at + maxTagCharacters);
  const end = tag.indexOf(">");
  return {
    prefix: found[1] ?? "",
    name: found[2]!.toLowerCase(),
    tag: end < 0 ? tag : tag.slice(0, end),
    at,
  };
}

function pastBlanks(text: string, from: number): number {
  let at = from;
  while (at < text.length && (text.charCodeAt(at) <= 0x20 || text[at] === "\ufeff")) at++;
  return at;
}

/** Behind a processing instruction, comment or declaration; -1 when it has no end; null for anything else. */
function pastMarkup(text: string, at: number): number | null {
  if (text.startsWith("<?", at)) return behind(text, "?>", at + 2);
  if (text.startsWith("<!--", at)) return behind(text, "-->", at + 4);
  if (text.startsWith("<!", at)) return pastDeclaration(text, at);
  return null;
}

function pastDeclaration(text: string, at: number): number {
  const end = text.indexOf(">", at);
  const subset = text.indexOf("[", at);
  if (end < 0 || subset < 0 || end < subset) return end < 0 ? -1 : end + 1;
  const close = /\]\s*>/g;
  close.lastIndex = subset;
  return close.exec(text) === null ? -1 : close.lastIndex;
}

function behind(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? -1 : at + mark.length;
}
