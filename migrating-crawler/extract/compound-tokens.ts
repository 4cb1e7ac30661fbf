/** Words joined by hyphens, as Postgres' default text search parser reads them. */
import { asciiLetter, classAt, digit, letter, mark, wordPart, wordStart } from "./character-classes.ts";
import { anyWord, asciiWord, asItIs, type TokenKind } from "./token-kind.ts";

const hyphen = 0x2d;

export interface Words {
  readonly kind: TokenKind;
  readonly end: number;
}

/** What a word of the kind `first`, which a hyphen follows at `at`, becomes with all that is joined to it. */
export function compoundFrom(text: string, first: TokenKind, at: number): Words {
  let kind = first;
  let end = at;
  while (text.charCodeAt(end) === hyphen) {
    const part = compoundPart(text, end + 1);
    if (part === null) break;
    if (part.kind > kind) kind = part.kind;
    end = part.end;
  }
  return { kind, end };
}

/** What may stand beside a hyphen: a word, or digits with a letter behind them. */
export function compoundPart(text: string, from: number): Words | null {
  if (from >= text.length || (classAt(text, from) & wordStart) === 0) return null;
  let at = from;
  let seen = 0;
  for (; at < text.length; at++) {
    const is = classAt(text, at);
    if ((is & wordPart) === 0) break;
    seen |= is & asciiLetter ? asciiLetter : is;
  }
  const isAscii = (seen & (letter | mark)) === 0;
  if (seen & digit) return isAscii && (seen & asciiLetter) === 0 ? null : { kind: asItIs, end: at };
  return { kind: isAscii ? asciiWord : anyWord, end: at };
}
