/**
 * A page's language as ISO 639: what it declares, else what its text looks like. The detector costs 50 MB
 * of memory, so it is loaded when the first page without a declaration comes.
 */
const minDetectCharacters = 100;
const maxDetectCharacters = 4000;

export async function languageOf(page: {
  readonly declared: string | null;
  readonly contentLanguage: string | null;
  readonly text: string;
}): Promise<string | null> {
  const declared = codeOf(page.declared) ?? codeOf(page.contentLanguage);
  if (declared !== null) return declared;
  if (page.text.length < minDetectCharacters) return null;
  const { eld } = await import("eld/extrasmall");
  const found = eld.detect(page.text.slice(0, maxDetectCharacters));
  return found.isReliable() ? codeOf(found.language) : null;
}

/** `de` of `de-AT`, `en_US`, `pt, en`; null of what is no language tag (BCP 47). */
function codeOf(tag: string | null): string | null {
  const code = /^\s*([a-z]{2,3})(?=$|[-_,;\s])/i.exec(tag ?? "")?.[1]?.toLowerCase();
  return code === undefined || code === "und" || code === "mul" || code === "zxx" ? null : code;
}
