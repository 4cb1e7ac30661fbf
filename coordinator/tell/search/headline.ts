/**
 * Marks the words of a query in a text as Postgres' `ts_headline(…, HighlightAll=true)` does. The text is split at
 * blanks into pieces. Postgres parses each piece once into tokens and lexemes (headline-reads.ts), so a text of known
 * pieces is marked without it. Words of 2 KB and more, which Postgres drops, are kept unmarked.
 */

/** Delimit a match: characters that the text itself cannot contain, so that markup is made only when the page is. */
export const startMark = "\u0002";
export const stopMark = "\u0003";

/** One token of a piece; the tokens joined are the piece. */
export interface PieceToken {
  readonly text: string;
  readonly lexemes: readonly string[];
}

/** Null means that it cannot match anything. */
export type ReadPiece = readonly PieceToken[] | null;

/** Only markup tokens can span a blank, so a text that may contain some is one piece. */
export function piecesOf(text: string): string[] {
  return text.includes("<")
    ? [text.replace(/^[ \t\n\v\f\r]+/, "")]
    : text.split(/[ \t\n\v\f\r]+/).filter((piece) => piece !== "");
}

export function withoutMarks(text: string): string {
  return text.replaceAll(startMark, "").replaceAll(stopMark, "");
}

/** `pieces`: those of the text, in order. */
export function markedText(
  text: string,
  pieces: readonly { readonly length: number; readonly tokens: ReadPiece }[],
  lexemes: ReadonlySet<string>,
): string {
  let marked = "";
  let from = 0;
  let at = 0;
  for (const { length, tokens } of pieces) {
    while (isBlank(text.charCodeAt(at))) at++;
    const end = at + length;
    for (const token of tokens ?? []) {
      const next = at + token.text.length;
      if (token.lexemes.some((lexeme) => lexemes.has(lexeme))) {
        marked += `${text.slice(from, at)}${startMark}${token.text}${stopMark}`;
        from = next;
      }
      at = next;
    }
    at = end;
  }
  return marked + text.slice(from);
}

const isBlank = (code: number) => code === 0x20 || (code >= 0x09 && code <= 0x0d);

// Rules out pieces by their first letters: nine in ten, which then need no look-up.

/** Configurations whose lexemes begin with the word's own first letter if it is ASCII (test/search/headline.test). */
export const letterKeepers: ReadonlySet<string> = new Set([
  ...["basque", "catalan", "danish", "english", "finnish", "french", "german", "hungarian", "italian"],
  ...["norwegian", "portuguese", "romanian", "russian", "simple", "spanish", "swedish"],
]);

/** By character code, 1 for first letters of lexemes; null if this configuration does not keep first letters. */
type FirstCharacters = Uint8Array | null;

export function firstCharacters(configuration: string, lexemes: ReadonlySet<string>): FirstCharacters {
  if (!letterKeepers.has(configuration)) return null;
  const firsts = new Uint8Array(128);
  for (const lexeme of lexemes) {
    for (const form of [lexeme, lexeme.toUpperCase()]) {
      const code = form.charCodeAt(0);
      if (code < 128) firsts[code] = 1;
    }
  }
  return firsts;
}

/** A token starts where letters, digits and other characters meet, and possibly at any other character. */
export function mayMatch(piece: string, firsts: FirstCharacters): boolean {
  if (firsts === null) return true;
  let before = other;
  for (let at = 0; at < piece.length; at++) {
    const code = piece.charCodeAt(at);
    if (code >= 128) return true;
    const kind = kindOf(code);
    if (firsts[code] === 1 && (kind !== before || kind === other)) return true;
    before = kind;
  }
  return false;
}

const [other, digit, letter] = [0, 1, 2];

function kindOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return digit;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a ? letter : other;
}

/**
 * All lexemes of a tsquery as Postgres writes it, including excluded ones: in quotes, with quotes and backslashes
 * doubled.
 */
export function lexemesOfQuery(query: string): Set<string> {
  const lexemes = new Set<string>();
  for (const [quoted] of query.matchAll(/'(?:[^'\\]|''|\\\\)+'/g)) {
    lexemes.add(quoted.slice(1, -1).replaceAll("''", "'").replaceAll("\\\\", "\\"));
  }
  return lexemes;
}
