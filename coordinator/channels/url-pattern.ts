/**
 * Patterns of paths with their queries: `*` for anything, a final `$` for the end, as robots.txt has them (RFC 9309
 * section 2.2.3). SARSS filters by regular expressions, which an evil pattern can keep busy for ever; these match in
 * one pass over the path. `/news/` is everything that begins so, `/*.html$` every path that ends so.
 */
export interface UrlPattern {
  readonly text: string;
  /** Literal pieces between `*`. */
  readonly pieces: readonly string[];
  /** It ends in `$`. */
  readonly anchored: boolean;
}

export const mostPatternCharacters = 300;

/** The pattern, or what is wrong with it. */
export function parseUrlPattern(text: string): UrlPattern | string {
  if (text.length > mostPatternCharacters)
    return `the pattern is ${text.length} characters long, ${mostPatternCharacters} are possible: ${text.slice(0, 40)}…`;
  if (!/^[/*]/.test(text))
    return `the pattern "${text}" must begin with / or *: it is matched from the path's beginning`;
  if (/[^\x21-\x7e]/.test(text))
    return `the pattern "${text}" has a space or a character beyond ASCII: write it as URLs do, such as %20`;
  const anchored = text.endsWith("$");
  return { text, pieces: (anchored ? text.slice(0, -1) : text).split(/\*+/), anchored };
}

/** Leftmost fit of each piece in turn: right for `*`, because an earlier fit never hinders a later one. */
export function patternFits({ pieces, anchored }: UrlPattern, path: string): boolean {
  const first = pieces[0]!;
  if (!path.startsWith(first)) return false;
  let at = first.length;
  if (pieces.length === 1) return !anchored || at === path.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = path.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  const end = pieces.at(-1)!;
  if (!anchored) return path.indexOf(end, at) >= 0;
  return path.length - end.length >= at && path.endsWith(end);
}

/** Whether everything that fits `inner` is known to fit `outer`; false also where it cannot be told at a glance. */
export function patternCovers(outer: UrlPattern, inner: UrlPattern): boolean {
  if (outer.text === inner.text) return true;
  if (outer.anchored) return false;
  const [begin, ...rest] = outer.pieces;
  return rest.every((piece) => piece === "") && inner.pieces[0]!.startsWith(begin!);
}
