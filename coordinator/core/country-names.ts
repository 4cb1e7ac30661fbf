/** Countries by their codes (ISO 3166-1 alpha-2) and their English names. */

const countryNames = new Intl.DisplayNames("en", { type: "region", fallback: "none" });

/** Cached, because a lookup costs microseconds and a page of results has dozens of them. */
const knownNames = new Map<string, string>();

/** Returns the code itself when it is unknown. */
export function countryName(code: string): string {
  if (!/^[A-Z]{2}$/.test(code)) return code;
  const known = knownNames.get(code) ?? countryNames.of(code) ?? code;
  knownNames.set(code, known);
  return known;
}

/** Codes that stand for no country but have a name in CLDR. */
const noCountries: ReadonlySet<string> = new Set(["ZZ", "XA", "XB", "QO", "EZ", "UN"]);

/** Withdrawn codes of countries that split into several, so they cannot be resolved to one. */
const dissolved: ReadonlySet<string> = new Set(["AN", "CS", "NT", "PC", "SU", "YU"]);

/** Replaces a withdrawn code by its successor (UK → GB, DD → DE). */
export function codeInForce(code: string): string {
  if (dissolved.has(code)) return code;
  const [canonical = ""] = Intl.getCanonicalLocales(`und-${code}`);
  return canonical.slice("und-".length);
}

let codesByName: ReadonlyMap<string, string> | null = null;

/** Accepts a code or an English name in any case. Returns null if there is no such country. */
export function countryCode(text: string): string | null {
  codesByName ??= readCodes();
  return codesByName.get(text.trim().toLowerCase()) ?? null;
}

function readCodes(): Map<string, string> {
  const codes = new Map<string, string>();
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  for (const code of letters.flatMap((a) => letters.map((b) => a + b))) {
    const name = countryNames.of(code);
    if (name === undefined || noCountries.has(code)) continue;
    // Resolves withdrawn codes: DD becomes DE, UK becomes GB.
    const [canonical = ""] = Intl.getCanonicalLocales(`und-${code}`);
    const inForce = canonical.slice("und-".length);
    codes.set(code.toLowerCase(), inForce);
    if (inForce === code) codes.set(name.toLowerCase(), code);
  }
  return codes;
}
