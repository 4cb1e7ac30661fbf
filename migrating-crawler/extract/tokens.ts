/**
 * Splits text into the tokens of Postgres' default text search parser (PostgreSQL manual, section 12.5):
 * words, numbers, compounds with their parts, hosts, URLs, e-mail addresses, files, versions. It follows the
 * manual, the parser's states and what `ts_debug` answers; a test compares both on real text. What Postgres' default
 * configurations throw away (tags, entities, blanks, protocols) is not reported.
 *
 * A plain word, which most are, costs one step of one regular expression; the rest is sorted out only where
 * a neighbouring character says that the word may be part of something larger.
 */

/** Words and compounds, for the dictionary to sort by their characters; everything else is taken as it is. */
export type TokenKind = "word" | "simple";
export type TakeToken = (kind: TokenKind, text: string) => void;

/** What may stand in a word; digits of other scripts count as letters, marks only continue a word. */
const letter = "\\p{Alphabetic}\\p{Nd}\\p{M}";
const run = new RegExp(`[\\p{Alphabetic}\\p{Nd}][${letter}]*`, "gu");
const opens = new Set("+-/~._");
const continues = new Set("-./:@_");

const label = "[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?";
const hostText = `(?:${label}\\.){1,30}[A-Za-z]{2,63}(?![A-Za-z0-9])`;
const email = new RegExp(`[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+){0,20}@${hostText}`, "y");
const host = new RegExp(`${hostText}(?::[0-9]{1,9})?`, "y");
const urlPath = /\/[!#-;=?-[\]_a-z~]+/y;
const protocol = /[A-Za-z]+:\/\//y;
const fileRest = "(?:[A-Za-z0-9_-]|[./](?=[A-Za-z0-9_]))*";
const rootedFile = new RegExp(`(?:~/?|\\.{0,2}/)[A-Za-z0-9_]${fileRest}`, "y");
const wordFile = new RegExp(`(?:[0-9]*[A-Za-z][A-Za-z0-9]*[./]|[0-9]+/)[A-Za-z0-9_]${fileRest}`, "y");
const version = /[0-9]+(?:\.[0-9]+){2,}/y;
const number = /[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)/y;
const signedVersion = /[+-][0-9]+(?:\.[0-9]+){2,}/y;
const signedNumber = /[+-][0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const compound = new RegExp(
  `(?=[0-9]*[\\p{Alphabetic}])[${letter}]+(?:-(?=[0-9]*[\\p{Alphabetic}])[${letter}]+)+`,
  "uy",
);
const plainRun = new RegExp(`[${letter}]+`, "uy");

/** Calls `take` for each token in the text's order; false from `isFull` ends it early. */
export function splitTokens(source: string, take: TakeToken, isFull: () => boolean): void {
  const text = withoutMarkup(source);
  let done = 0;
  run.lastIndex = 0;
  for (let found = run.exec(text); found !== null; found = run.exec(text)) {
    if (isFull()) return;
    const end = run.lastIndex;
    const before = found.index > done ? text[found.index - 1]! : "";
    const isPlain = !opens.has(before) && !continues.has(text[end] ?? "");
    if (isPlain && !startsWithDigit(text, found.index)) {
      take("word", found[0]);
      done = end;
    } else {
      done = takeComplex(text, beginning(text, found.index, done), found.index, take);
    }
    run.lastIndex = done;
  }
}

/** Postgres takes tags and entities for tokens that no dictionary wants. */
function withoutMarkup(text: string): string {
  let plain = text;
  if (plain.includes("<")) plain = plain.replace(/<\/?[A-Za-z][^<>]*>/g, " ");
  if (plain.includes("&"))
    plain = plain.replace(/&(?:#\d{1,7}|#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});/g, " ");
  return plain;
}

const startsWithDigit = (text: string, at: number) => {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
};

/** Where a path or a sign before the word may begin. */
function beginning(text: string, wordAt: number, done: number): number {
  let at = wordAt;
  while (at > done && wordAt - at < 4 && opens.has(text[at - 1]!)) at--;
  return at;
}

/** Takes the token that begins at or after `from`, the latest at `wordAt`; returns where it ends. */
function takeComplex(text: string, from: number, wordAt: number, take: TakeToken): number {
  for (let at = from; at < wordAt; at++) {
    const end = takeRooted(text, at, take);
    if (end > wordAt) return end;
  }
  return (
    takeSite(text, wordAt, take) || takeNumberOrFile(text, wordAt, take) || takeWords(text, wordAt, take)
  );
}

function takeRooted(text: string, at: number, take: TakeToken): number {
  const sign = text[at] === "+" || text[at] === "-";
  if (sign && match(signedVersion, text, at) === "") return takeMatch(signedNumber, text, at, take);
  return sign ? 0 : takeMatch(rootedFile, text, at, take);
}

function takeSite(text: string, at: number, take: TakeToken): number {
  const scheme = match(protocol, text, at);
  if (scheme !== "") return at + scheme.length;
  const mail = takeMatch(email, text, at, take);
  if (mail) return mail;
  const name = match(host, text, at);
  if (name === "") return 0;
  const path = match(urlPath, text, at + name.length);
  if (path !== "") take("simple", name + path);
  take("simple", name);
  if (path !== "") take("simple", path);
  return at + name.length + path.length;
}

function takeNumberOrFile(text: string, at: number, take: TakeToken): number {
  return (
    takeMatch(version, text, at, take) ||
    takeMatch(number, text, at, take) ||
    takeMatch(wordFile, text, at, take)
  );
}

function takeWords(text: string, at: number, take: TakeToken): number {
  const whole = match(compound, text, at);
  if (whole === "") {
    const word = match(plainRun, text, at);
    take("word", word);
    return at + word.length;
  }
  take("word", whole);
  for (const part of whole.split("-")) take("word", part);
  return at + whole.length;
}

function takeMatch(pattern: RegExp, text: string, at: number, take: TakeToken): number {
  const found = match(pattern, text, at);
  if (found === "") return 0;
  take("simple", found);
  return at + found.length;
}

function match(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}
