/**
 * Whether a text is a URL (WHATWG URL), as `URL.canParse` should tell: in Node 20 that says no to whatever holds a
 * letter such as ü, once it was called some thousand times and has been compiled.
 */
export function canParseUrl(text: string, base?: string | URL): boolean {
  try {
    new URL(text, base);
    return true;
  } catch {
    return false;
  }
}
