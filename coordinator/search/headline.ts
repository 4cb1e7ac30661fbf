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

/** All lexemes of a tsquery as Postgres writes it, excluded ones too: in quotes, with quotes and backslashes doubled. */
export function lexemesOfQuery(query: string): Set<string> {
  const lexemes = new Set<string>();
  for (const [quoted] of query.matchAll(/'(?:[^'\\]|''|\\\\)+'/g)) {
    lexemes.add(quoted.slice(1, -1).replaceAll("''", "'").replaceAll("\\\\", "\\"));
  }
  return lexemes;
}
