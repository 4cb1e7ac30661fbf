/** Numbers as Postgres' default text search parser reads them: integers, decimals, exponents, versions. */
import { classAt, digit } from "./character-classes.ts";

const dot = 0x2e;

export function digitsEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && classAt(text, at) & digit) at++;
  return at;
}

/** Where the exponent ends whose `e` is at `at`, after digits; -1 for none. */
export function scientificEnd(text: string, at: number): number {
  if (text[at] !== "e" && text[at] !== "E") return -1;
  const sign = text[at + 1] === "+" || text[at + 1] === "-" ? 1 : 0;
  const end = digitsEnd(text, at + 1 + sign);
  return end === at + 1 + sign ? -1 : end;
}

/** Where the decimal number (`1.5`, `1.5e3`) or version (`1.2.3`) ends whose digits so far end at `at`. */
export function decimalEnd(text: string, at: number): number {
  let end = at;
  for (let dots = 0; text.charCodeAt(end) === dot; dots++) {
    const after = digitsEnd(text, end + 1);
    if (after === end + 1) return end;
    end = after;
    const exponent = dots === 0 ? scientificEnd(text, end) : -1;
    if (exponent > 0) return exponent;
  }
  return end;
}

/** Where the number ends whose sign is at `from`; -1 for none, `from` when a version follows the sign. */
export function signedNumberEnd(text: string, from: number): number {
  const at = digitsEnd(text, from + 1);
  if (at === from + 1) return -1;
  const exponent = scientificEnd(text, at);
  if (exponent > 0) return exponent;
  const end = text.charCodeAt(at) === dot ? digitsEnd(text, at + 1) : at;
  if (end <= at + 1) return at;
  if (text.charCodeAt(end) === dot && digitsEnd(text, end + 1) > end + 1) return from;
  const decimalExponent = scientificEnd(text, end);
  return decimalExponent > 0 ? decimalExponent : end;
}
