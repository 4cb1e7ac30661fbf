/** Country codes of two letters (ISO 3166-1 alpha-2, plus the registries' EU and AP); UK becomes GB. */
import { codeInForce } from "#core/country-names";

/** Caches codes as written: a dump has millions, but only a few hundred different ones. */
const codes = new Map<string, string | null>();

/** Example: `nl` gives `NL`; null for ZZ (unknown) and anything but two letters. */
export function countryCode(text: string | null): string | null {
  if (text === null || !/^[A-Za-z]{2}$/.test(text)) return null;
  const known = codes.get(text);
  if (known !== undefined) return known;
  const code = text.toUpperCase() === "ZZ" ? null : codeInForce(text.toUpperCase());
  codes.set(text, code);
  return code;
}
