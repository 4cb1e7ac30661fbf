/**
 * Names out of a jCard (RFC 7095), the address card of RDAP's entities: `["vcard", [[name, parameters, type,
 * value…]…]]`. Lenient: whatever is not of this shape is passed over.
 */
export interface CardNames {
  /** `individual`, `org`, `group` …; null where the card does not say. */
  readonly kind: string | null;
  /** The formatted name (`fn`), or null. */
  readonly name: string | null;
  /** The organisation (`org`), its units after it; or null. */
  readonly organisation: string | null;
}

const maxProperties = 1000;
const maxTextLength = 500;

export function namesInCard(card: unknown): CardNames {
  const properties = Array.isArray(card) && Array.isArray(card[1]) ? card[1].slice(0, maxProperties) : [];
  return {
    kind: textOf(properties, "kind")?.toLowerCase() ?? null,
    name: textOf(properties, "fn"),
    organisation: textOf(properties, "org"),
  };
}

/** The first value of that name that is not empty; a structured value's parts are joined by commas. */
function textOf(properties: readonly unknown[], name: string): string | null {
  for (const property of properties) {
    if (!Array.isArray(property) || String(property[0]).toLowerCase() !== name) continue;
    const parts = [property[3]].flat().filter((part) => typeof part === "string");
    const text = parts.join(", ").replace(/\s+/g, " ").trim().slice(0, maxTextLength);
    if (text !== "") return text;
  }
  return null;
}
