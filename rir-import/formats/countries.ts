/** Countries by two letters (ISO 3166-1 alpha-2, and the EU and AP that registries use beside them); UK is GB. */
import { codeInForce } from "#core/country-names";

/** By what is written: a dump has millions of codes, and there are a few hundred. */
const codes = new Map<string, string | null>();

/** `nl` → `NL`; null for ZZ (unknown) and for whatever is not two letters. */
export function countryCode(text: string | null): string | null {
  if (text === null || !/^[A-Za-z]{2}$/.test(text)) return null;
  const known = codes.get(text);
  if (known !== undefined) return known;
  const code = text.toUpperCase() === "ZZ" ? null : codeInForce(text.toUpperCase());
  codes.set(text, code);
  return code;
}
