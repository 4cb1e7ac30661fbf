/**
 * Reads the price that a site asks with a 402: `crawler-price` (Cloudflare's pay per crawl, as of April 2026: `USD
 * 0.01`), else the first offer of `PAYMENT-REQUIRED` (x402 version 2, HTTP transport: base64 of JSON). The price is
 * shown to people; we do not pay.
 */

const maxPriceCharacters = 80;
const maxOfferCharacters = 16_384;

/** Returns null when no readable price is named. */
export function askedPrice(headers: Readonly<Record<string, string | string[] | undefined>>): string | null {
  const stated = legible([headers["crawler-price"] ?? []].flat()[0] ?? "");
  return stated === "" ? offeredPrice([headers["payment-required"] ?? []].flat()[0] ?? "") : stated;
}

/** The amount is in the asset's smallest units, as offered: `10000 USDC on eip155:84532 (x402)`. */
function offeredPrice(header: string): string | null {
  if (header === "" || header.length > maxOfferCharacters) return null;
  try {
    const offer: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    const first = fieldOf(fieldOf(offer, "accepts"), "0");
    const amount = fieldOf(first, "amount");
    if (typeof amount !== "string" && typeof amount !== "number") return null;
    const asset = fieldOf(fieldOf(first, "extra"), "name") ?? "units";
    const network = fieldOf(first, "network") ?? "?";
    return legible(`${amount} ${asset} on ${network} (x402)`);
  } catch {
    return null;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function legible(text: string): string {
  return text
    .slice(0, 200)
    .replace(/[^\x21-\x7e]+/g, " ")
    .trim()
    .slice(0, maxPriceCharacters);
}
