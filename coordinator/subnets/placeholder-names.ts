/** Texts that registries have where a holder would stand, and that mean nobody in particular. */
import { wordSet } from "./legal-forms.ts";

/** Whether a name, as registered or normalised, stands for nobody: "not allocated", "private customer", "????". */
export function isPlaceholderName(name: string): boolean {
  const first = firstAsciiWord(name);
  if (!asciiLetter.test(first) && !anyLetter.test(name)) return true;
  if (!firstWords.has(first) && !onlyXs.test(first)) return false;
  return placeholderNames.test(plain(name));
}

/** Whether a handle belongs to an organisation that stands for nobody. In upper case. */
export function isPlaceholderHandle(handle: string): boolean {
  return placeholderHandles.has(handle);
}

export function isPlaceholderId(opaqueId: string): boolean {
  return placeholderIds.test(opaqueId);
}

const placeholderHandles: ReadonlySet<string> = new Set([
  "ORG-IANA1-RIPE",
  "IANA",
  "IANA-RESERVED",
  "IANA1-RIPE",
  "NOT-ALLOCATED",
]);
const placeholderIds = /^(?:0+|x+|n\/?a|none|null|unknown|reserved|available|unallocated)$/i;

/** In lower case, words separated by single spaces. */
const placeholderNames =
  /^(?:x+|tba|tbd|n ?a|nil|none|null|unknown|unspecified|undefined|unnamed|no name|not available|not applicable|anonymous|private|private (?:customer|person|individual|user|residence|residential customer)s?|(?:residential )?(?:customer|user|individual|subscriber)s?|reserved|unallocated|unassigned|available|free|spare|legacy|test|testing|dummy|example|placeholder|stub|to be (?:defined|determined|assigned)|various(?: registries)?|iana|internet assigned numbers authority|(?:not|never) (?:allocated|assigned)(?: .*)?|administered by .*|(?:early|transferred) .*registration.*|non ripe ncc managed.*|address(?:es)? not .*|(?:iana|afrinic|apnic|arin|lacnic|ripe) (?:reserved|special|block|blk|pool).*)$/u;
/** Each of those names begins with one of these words (or is a row of x), so that other names are told at once. */
const firstWords = wordSet(`
  tba tbd n na nil none null unknown unspecified undefined unnamed no not never anonymous private residential
  customer customers user users individual individuals subscriber subscribers reserved unallocated unassigned
  available free spare legacy test testing dummy example placeholder stub to various iana internet administered
  early transferred non address addresses afrinic apnic arin lacnic ripe
`);
const onlyXs = /^x+$/;
const asciiLetter = /[a-z]/;
const anyLetter = /\p{L}/u;

/** In lower case; empty where there is none. By character codes: every name passes here, most of them twice. */
function firstAsciiWord(name: string): string {
  let start = 0;
  while (start < name.length && !isAsciiAlphanumeric(name.charCodeAt(start))) start += 1;
  let end = start;
  while (end < name.length && isAsciiAlphanumeric(name.charCodeAt(end))) end += 1;
  return name.slice(start, end).toLowerCase();
}

function isAsciiAlphanumeric(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

const plain = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
