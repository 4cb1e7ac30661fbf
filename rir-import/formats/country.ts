/** Countries by two letters (ISO 3166-1 alpha-2, and the EU and AP that registries use beside them). */
import { skipBlanks, skipBlanksBack } from "./text-decoding.ts";

const letters = 26;
/** A text for each pair of letters, made once: a dump has millions of them. */
const codes = Array.from({ length: letters * letters }, (_, pair) => {
  const code = String.fromCharCode(0x41 + Math.floor(pair / letters), 0x41 + (pair % letters));
  return code === "ZZ" ? null : code;
});

/** `nl` → `NL`; null for ZZ (unknown) and for whatever is not two letters. */
export function countryCode(text: string | null): string | null {
  if (text === null || text.length !== 2) return null;
  return codeOf(text.charCodeAt(0), text.charCodeAt(1));
}

/** The same straight from bytes, blanks around them; undefined when there is more than two letters. */
export function readCountry(bytes: Buffer, start: number, end: number): string | null | undefined {
  const from = skipBlanks(bytes, start, end);
  const to = skipBlanksBack(bytes, from, end);
  return to - from === 2 ? codeOf(bytes[from] as number, bytes[from + 1] as number) : undefined;
}

function codeOf(first: number, second: number): string | null {
  const [one, other] = [letterOf(first), letterOf(second)];
  return one < 0 || other < 0 ? null : (codes[one * letters + other] ?? null);
}

/** 0 to 25, or −1. */
function letterOf(code: number): number {
  const letter = (code | 0x20) - 0x61;
  return letter >= 0 && letter < letters && code < 0x80 ? letter : -1;
}
