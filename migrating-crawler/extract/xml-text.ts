/**
 * XML bytes to text: byte order mark, then the header's charset, then the XML declaration (RFC 7303 section
 * 3, XML 1.0 appendix F), then as any other text.
 */
import { type DecodedText, decodeText } from "./charset.ts";

const declaration = /^\s*<\?xml\s[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z][\w.-]{0,39})["']/;

export function xmlText(bytes: Buffer, contentType: string): DecodedText {
  const stated = /;\s*charset\s*=/i.test(contentType);
  const charset = stated ? null : (unmarkedUtf16(bytes) ?? declaredCharset(bytes));
  return decodeText(bytes, charset === null ? contentType : `application/xml; charset=${charset}`);
}

/** `<?` or `<x` in UTF-16 without a byte order mark. */
function unmarkedUtf16(bytes: Buffer): string | null {
  if (bytes[0] === 0x3c && bytes[1] === 0) return "utf-16le";
  return bytes[0] === 0 && bytes[1] === 0x3c ? "utf-16be" : null;
}

/** A declaration that can be read as ASCII does not stand in UTF-16, whatever it says. */
function declaredCharset(bytes: Buffer): string | null {
  const stated = declaration.exec(bytes.toString("latin1", 0, 512))?.[1] ?? null;
  return stated !== null && /^utf-?16/i.test(stated) ? null : stated;
}
