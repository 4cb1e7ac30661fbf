/**
 * A text with the words of a query marked, as Postgres' `ts_headline(…, HighlightAll=true)` marks them. The text is cut at
 * its blanks into pieces; how a piece is read (its tokens and their lexemes) Postgres tells once (headline-reads.ts), so that
 * a text of known pieces is marked without it. Words of 2 KB and more, which Postgres drops, are kept, unmarked.
 */

/** Around a match: characters that the text itself cannot hold, so that no markup is made until a page is. */
export const startMark = "\u0002";
export const stopMark = "\u0003";

/** One token of a piece; the tokens side by side are the piece. */
export interface PieceToken {
  readonly text: string;
  readonly lexemes: readonly string[];
}

/** Null: nothing that could match. */
export type ReadPiece = readonly PieceToken[] | null;

/** Of the parser's tokens only markup goes on over a blank; a text that may have some is one piece. */
export function piecesOf(text: string): string[] {
  return text.includes("<")
    ? [text.replace(/^[ \t\n\v\f\r]+/, "")]
    : text.split(/[ \t\n\v\f\r]+/).filter((piece) => piece !== "");
}

export function withoutMarks(text: string): string {
  return text.replaceAll(startMark, "").replaceAll(stopMark, "");
}

/** `pieces`: those of the text, in their order. */
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

// Which pieces cannot match, told by first letters: nine in ten, which then need not be known.

/** Of a word that begins with an ASCII letter, their lexeme begins with the same one (headline.test.ts). */
export const letterKeepers: ReadonlySet<string> = new Set([
  ...["basque", "catalan", "danish", "english", "finnish", "french", "german", "hungarian", "italian"],
  ...["norwegian", "portuguese", "romanian", "russian", "simple", "spanish", "swedish"],
]);

/** By character code, 1 for those that a lexeme begins with; null: under this configuration it tells nothing. */
export type FirstCharacters = Uint8Array | null;

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

/** A token begins where letters, digits and others change, and may at any other character. */
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

/** All lexemes of a tsquery as Postgres writes it, excluded ones too: in quotes, with quotes and backslashes doubled. */
export function lexemesOfQuery(query: string): Set<string> {
  const lexemes = new Set<string>();
  for (const [quoted] of query.matchAll(/'(?:[^'\\]|''|\\\\)+'/g)) {
    lexemes.add(quoted.slice(1, -1).replaceAll("''", "'").replaceAll("\\\\", "\\"));
  }
  return lexemes;
}
